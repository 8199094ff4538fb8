"""Where the final hidden states of a model lie, measured: radii, box, cone, and how all of them grow."""

from pathlib import Path
from typing import Any

from lmreach.config import SupportConfig
from lmreach.config.given import configure
from lmreach.experiments.states.file import saved_support, write_support
from lmreach.experiments.states.stream import HiddenSupport
from lmreach.experiments.states.support import SupportReport, measure_support, prompt_lengths
from lmreach.files import check_place
from lmreach.maths.bounds import limits
from lmreach.maths.precision import number_format
from lmreach.models.load import ModelLike, Tokenizer, load
from lmreach.models.loaded import LoadedModel
from lmreach.progress import Progress, watching
from lmreach.results.support import SupportGrowth, SupportResults

__all__ = ["support"]


def support(
    model: ModelLike,
    config: SupportConfig | None = None,
    *,
    out: str | Path | None = None,
    tokenizer: Tokenizer | None = None,
    progress: Progress | None = None,
    **settings: Any,
) -> SupportResults:
    """Measure where final hidden states lie.

    Parameters
    ----------
    model
        Hugging Face id, folder, .gguf file, builtin:NAME, or a loaded model.
    config, settings
        See `SupportConfig`; settings by name replace those of the config.
    out
        Support file to write, which `bounds` and `cells` take; None: none is written.
    tokenizer
        Goes with a model of transformers.
    progress
        Told how far it is; None: a bar where somebody looks on, else nobody.

    Raises
    ------
    LmreachError
        Prompts, lengths, a number format or a model that cannot be used, or a file that cannot be written.
    """
    asked = configure(SupportConfig, config, settings)
    number_format(asked.limit_dtype)
    if out is not None:
        check_place(Path(out))
    with watching(progress) as watched:
        return _support(model, asked, out, tokenizer, watched)


def _support(
    model: ModelLike,
    asked: SupportConfig,
    out: str | Path | None,
    tokenizer: Tokenizer | None,
    watched: Progress,
) -> SupportResults:
    loaded = load(model, asked.load, tokenizer=tokenizer, progress=watched.note)
    kinds, context = asked.prompts, loaded.facts.context
    lengths = tuple(sorted(set(asked.lengths or prompt_lengths(context, asked.positions, len(kinds)))))
    measured = measure_support(
        loaded,
        positions=asked.positions,
        lengths=lengths,
        kinds=kinds,
        seed=asked.seed,
        say=watched.stage,
    )
    ends_at = "asked" if asked.lengths else "context" if lengths[-1] == context else "positions"
    saved = saved_support(loaded, measured, ends_at=ends_at)
    if out is not None:
        write_support(Path(out), saved)
    return SupportResults(
        **saved.facts,
        limit_dtype=asked.limit_dtype,
        growth=_growth(loaded, measured, asked.limit_dtype),
        file=None if out is None else Path(out).name,
    )


def _growth(model: LoadedModel, measured: SupportReport, dtype: str) -> tuple[SupportGrowth, ...]:
    return tuple(
        SupportGrowth(
            by=step.what,
            value=step.value,
            states=step.seen.samples,
            l1_max=step.seen.l1_max,
            l2_max=step.seen.l2_max,
            linf_max=step.seen.linf_max,
            mean_cos=step.seen.mean_cos,
            box=slopes["box of hidden states"],
            box_and_ellipsoid=slopes.get("box and norm ellipsoid"),
        )
        for step in measured.growth
        for slopes in [_slopes(model, step.seen, dtype)]
    )


def _slopes(model: LoadedModel, seen: HiddenSupport, dtype: str) -> dict[str, float]:
    """Return C of the limits by name, those that move with the samples among them, in tokens per vector."""
    norm = model.final_norm
    found = limits(
        width=model.facts.width,
        hidden_width=model.facts.hidden_width,
        vocab=model.facts.usable,
        dtype=dtype,
        hidden_box=(seen.low, seen.high),
        hidden_radius=seen.linf_max,
        norm_kind=norm.kind,
        norm_gain=norm.gain,
        norm_bias=norm.bias if norm.bias.size else None,
    )
    return {limit.name: limit.tokens_per_vector for limit in found}
