"""Limits from theory: of a model's weights, or of four numbers."""

from pathlib import Path
from typing import Any

from lmreach.config import BoundsConfig
from lmreach.config.given import configure
from lmreach.errors import InputError, problem
from lmreach.experiments.states.file import read_support
from lmreach.maths.bounds import Limit, least_widths, limits, tightest, unbounded_context
from lmreach.maths.precision import number_format, unit_roundoff
from lmreach.maths.supports import Ball
from lmreach.models.load import ModelLike, Tokenizer, load
from lmreach.models.partial import Parts, read_parts, whole_parts
from lmreach.results.bounds import BoundsResults, LimitAt
from lmreach.runs.model_limits import cone_limits, parts_limits, unbounded_limits

__all__ = ["bounds"]


def bounds(
    model: ModelLike | None = None,
    config: BoundsConfig | None = None,
    *,
    tokenizer: Tokenizer | None = None,
    **settings: Any,
) -> BoundsResults:
    """Return every limit that a model's weights, or four numbers, allow.

    Of a model on disk only config, final norm, head and token table are read, not its layers.

    Parameters
    ----------
    model
        Hugging Face id, folder, .gguf file, builtin:NAME, or a loaded model; None: ``width`` and ``vocab``
        are given.
    config, settings
        See `BoundsConfig`; settings by name replace those of the config.

    tokenizer
        Goes with a model of transformers: usable ids are those it knows.

    Raises
    ------
    LmreachError
        Neither a model nor its numbers, or both; a number format, support file or model that cannot be used.

    Examples
    --------
    >>> bounds(width=768, vocab=50304, limit_dtype="float16").tightest("format").name
    'every finite value'
    """
    asked = configure(BoundsConfig, config, settings)
    if model is None:
        return _of_numbers(asked)
    if asked.width is not None or asked.vocab is not None or asked.radius is not None:
        raise InputError(problem("either MODEL or --width, --vocab and --radius", "both", "leave one out"))
    return _of_model(model, asked, tokenizer)


def _of_numbers(asked: BoundsConfig) -> BoundsResults:
    width, vocab, dtype = asked.width, asked.vocab, asked.eps_dtype
    if vocab is None or (width is None and asked.need is None):
        wanted = "MODEL, or both --width and --vocab, or --vocab and --need"
        raise InputError(problem(wanted, "fewer", "see lmreach bounds --help"))
    if asked.support is not None:
        raise InputError(problem("MODEL with --support", "none", "name the model it was measured on"))
    stored = asked.vector_dtype or dtype
    widths: dict[str, int] = {}
    if width is None:
        assert asked.need is not None, "asked for above"
        widths = least_widths(asked.need, asked.m, vocab=vocab, dtype=dtype, vector_dtype=stored)
        width = max(widths.values())
    found = limits(
        width=width,
        vocab=vocab,
        dtype=dtype,
        radius=asked.radius,
        vector_dtype=stored,
    )
    ball = unbounded_context(Ball(width, 1.0), eps=unit_roundoff(dtype), vocab=vocab)
    results = _results(asked, f"d = {width}, V = {vocab}", (), found, {"ball (paper)": ball})
    return results.model_copy(update={"widths_needed": widths})


def _of_model(model: ModelLike, asked: BoundsConfig, tokenizer: Tokenizer | None) -> BoundsResults:
    dtype, vector_dtype = asked.limit_dtype or "float16", asked.vector_dtype or "float32"
    # What needs no model is checked before one is read.
    number_format(dtype), number_format(vector_dtype)
    saved = None if asked.support is None else read_support(Path(asked.support))
    parts = _parts(model, asked, tokenizer)
    if saved is not None:
        saved.check(
            name=parts.name,
            width=parts.hidden_width,
            gain=parts.final_norm.gain,
            fingerprint=parts.fingerprint,
        )
    found = parts_limits(parts, support=saved, dtype=dtype, vector_dtype=vector_dtype)
    if saved is not None:
        found += cone_limits(
            saved, half_angle=saved.half_angle, min_cos=saved.min_cos, vocab=parts.usable, dtype=dtype
        )
    subject = f"{parts.name}: d = {parts.width}, {parts.rows} rows, {parts.usable} usable = V"
    return _results(asked, subject, parts.notes, found, unbounded_limits(parts, dtype=dtype))


def _parts(model: ModelLike, asked: BoundsConfig, tokenizer: Tokenizer | None) -> Parts:
    config = asked.load.of_model()
    if isinstance(model, str | Path) and tokenizer is None:
        return read_parts(model, config)
    return whole_parts(load(model, config, tokenizer=tokenizer))


def _results(
    asked: BoundsConfig,
    subject: str,
    notes: tuple[str, ...],
    found: tuple[Limit, ...],
    thresholds: dict[str, float],
) -> BoundsResults:
    m, n = asked.m, asked.n
    best = {limit.name for limit in tightest(found).values()}
    return BoundsResults(
        subject=subject,
        m=m,
        n=n,
        need=asked.need,
        limits=tuple(
            LimitAt(
                **limit.as_dict(),
                tightest_of_premise=limit.name in best,
                log_count_nats=limit.log_count(m),
                longest_fully_possible=limit.longest_fully_possible(m),
                log_share_nats=None if n is None else limit.log_share(n, m),
                vectors_needed=None if asked.need is None else limit.least_vectors(asked.need),
            )
            for limit in found
        ),
        unbounded_log10_tokens=thresholds if asked.unbounded else {},
        notes=notes,
    )
