"""Where the final hidden states of a model lie."""

import sys
from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from lmreach.cli.options import Json, Load, NoProgress
from lmreach.config import LoadConfig
from lmreach.errors import InputError, problem

if TYPE_CHECKING:
    from lmreach.experiments.states.stream import HiddenSupport
    from lmreach.experiments.states.support import SupportReport
    from lmreach.models.loaded import LoadedModel


def support(
    model: str,
    /,
    *,
    positions: Annotated[int, Parameter(help="Hidden states to measure.")] = 8192,
    lengths: Annotated[
        list[int] | None,
        Parameter(
            consume_multiple=True,
            negative_iterable=(),
            help="Prompt lengths in tokens; default: 4, 16, 64, ... to the context limit, or as far as"
            " --positions affords (a quarter of them, for two kinds of prompts).",
        ),
    ] = None,
    prompts: Annotated[
        list[str] | None,
        Parameter(
            consume_multiple=True,
            negative_iterable=(),
            help="Kinds of prompts: random, self, text:FILE, ids:FILE; default: random self.",
        ),
    ] = None,
    limit_dtype: Annotated[str, Parameter(help="Number format whose roundoff sets eps.")] = "float16",
    seed: Annotated[int, Parameter(help="Seed of the prompts.")] = 0,
    out: Annotated[
        str | None, Parameter(name=["--out", "-o"], help="Support file to write, for bounds --support.")
    ] = None,
    load: Load = LoadConfig(),
    json: Json = False,
    no_progress: NoProgress = False,
) -> int:
    """Measure where final hidden states lie: radii, box, enclosing cone, cosines, and how all of them grow.

    Parameters
    ----------
    model
        Hugging Face id, folder, .gguf file, or builtin:verse / builtin:random.
    """
    from lmreach.cli.support_table import print_growth, print_support
    from lmreach.experiments.states.file import saved_support, write_support
    from lmreach.experiments.states.support import measure_support, prompt_lengths
    from lmreach.maths.precision import number_format
    from lmreach.models.load import load as load_model

    number_format(limit_dtype)
    if seed < 0:
        raise InputError(problem("a seed of at least 0", str(seed), "pass another"))

    def say(line: str) -> None:
        if not no_progress:
            print(line, file=sys.stderr)

    loaded = load_model(model, load, progress=say)
    kinds, context = tuple(prompts or ("random", "self")), loaded.facts.context
    chosen = tuple(sorted(set(lengths or prompt_lengths(context, positions, len(kinds)))))
    found = measure_support(loaded, positions=positions, lengths=chosen, kinds=kinds, seed=seed, say=say)
    ends_at = "asked" if lengths else "context" if chosen[-1] == context else "positions"
    saved, growth = saved_support(loaded, found, ends_at=ends_at), _growth(loaded, found, limit_dtype)
    if out is not None:
        write_support(Path(out), saved)
    if json:
        entry = {**saved.facts, "limit_dtype": limit_dtype, "growth": growth, "file": out}
        print(dumps(entry, indent=1, allow_nan=False))
    else:
        print_support(saved.facts)
        print_growth(growth, limit_dtype)
        if out is not None:
            print(f"\nwritten: {out}; use it with: lmreach bounds {model} --support {out}")
    return _inside(found.seen)


# Beyond the rounding of a norm computed in 16 bits, no state may be outside.
_OUTSIDE = 1.02


def _inside(seen: "HiddenSupport") -> int:
    """Return the exit code: 1, and a line that says why, if a state left the norm ellipsoid."""
    if seen.ellipsoid_fraction is None or seen.ellipsoid_fraction <= _OUTSIDE:
        return 0
    print("lmreach: a state left the norm ellipsoid", file=sys.stderr)
    return 1


def _growth(model: "LoadedModel", found: "SupportReport", dtype: str) -> list[dict[str, Any]]:
    return [
        {
            "by": step.what,
            "value": step.value,
            "states": step.seen.samples,
            **_radii(step.seen),
            **_slopes(model, step.seen, dtype),
        }
        for step in found.growth
    ]


def _radii(seen: "HiddenSupport") -> dict[str, float]:
    return {
        "l1_max": seen.l1_max,
        "l2_max": seen.l2_max,
        "linf_max": seen.linf_max,
        "mean_cos": seen.mean_cos,
    }


def _slopes(model: "LoadedModel", seen: "HiddenSupport", dtype: str) -> dict[str, float | None]:
    """Return C of the limits that move with the samples, in tokens per vector."""
    from lmreach.maths.bounds import limits

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
    by_name = {limit.name: limit.tokens_per_vector for limit in found}
    return {
        "box": by_name["box of hidden states"],
        "box_and_ellipsoid": by_name.get("box and norm ellipsoid"),
    }
