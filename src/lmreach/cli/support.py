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
    from lmreach.experiments.geometry import HiddenSupport
    from lmreach.experiments.support import SupportReport
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
            help="Prompt lengths in tokens; default: 4, 16, 64, ... up to the context limit or 1024.",
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
    from lmreach.maths.precision import number_format

    number_format(limit_dtype)
    if seed < 0:
        raise InputError(problem("a seed of at least 0", str(seed), "pass another"))

    def say(line: str) -> None:
        if not no_progress:
            print(line, file=sys.stderr)

    from lmreach.experiments.support import measure_support, prompt_lengths
    from lmreach.experiments.support_file import write_support
    from lmreach.models.load import load as load_model

    loaded = load_model(model, load, progress=say)
    chosen = tuple(sorted(set(lengths))) if lengths else prompt_lengths(loaded.facts.context)
    kinds = tuple(prompts) if prompts else ("random", "self")
    found = measure_support(loaded, positions=positions, lengths=chosen, kinds=kinds, seed=seed, say=say)
    growth = [
        {"by": step.what, "value": step.value, **_radii(step.seen), **_slopes(loaded, step.seen, limit_dtype)}
        for step in found.growth
    ]
    saved = saved_support(loaded, found)
    if out is not None:
        write_support(Path(out), saved)
    if json:
        entry = {**saved.facts, "limit_dtype": limit_dtype, "growth": growth, "file": out}
        print(dumps(entry, indent=1, allow_nan=False))
    else:
        _print(saved.facts, growth, limit_dtype)
        if out is not None:
            print(f"\nwritten: {out}; use it with: lmreach bounds {model} --support {out}")
    if found.seen.ellipsoid_fraction is not None and found.seen.ellipsoid_fraction > _OUTSIDE:
        print("lmreach: a state left the norm ellipsoid", file=sys.stderr)
        return 1
    return 0


# Beyond the rounding of a norm computed in 16 bits, no state may be outside.
_OUTSIDE = 1.02


def saved_support(model: "LoadedModel", found: "SupportReport") -> Any:
    """Return what a support file holds."""
    from lmreach.experiments.support_file import SavedSupport

    facts = {
        "model": model.facts.name,
        "fingerprint": model.facts.fingerprint,
        "dtype": model.facts.dtype,
        "samples": found.seen.samples,
        "kinds": [_named(kind) for kind in found.seen.kinds],
        "lengths": list(found.lengths),
        **_radii(found.seen),
        "ellipsoid_fraction": found.seen.ellipsoid_fraction,
        "mean_angle": found.mean_angle,
        "half_angle": found.half_angle,
        "least_half_angle": found.least_half_angle,
        "kept": found.kept,
        "kept_min_cos": found.kept_min_cos,
        "min_cos_bound": found.min_cos_bound,
    }
    return SavedSupport(
        facts, found.seen.low, found.seen.high, found.axis, found.mean_direction, model.final_norm.gain
    )


def _named(kind: str) -> str:
    """Leave the folders of a file out of what is stored."""
    word, colon, rest = kind.partition(":")
    return f"{word}{colon}{Path(rest).name}" if colon else kind


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


def _print(facts: dict[str, Any], growth: list[dict[str, Any]], dtype: str) -> None:
    kinds, lengths = ", ".join(facts["kinds"]), ", ".join(str(n) for n in facts["lengths"])
    print(f"{facts['model']}: {facts['samples']} final hidden states; prompts: {kinds}; lengths: {lengths}")
    print(
        f"largest norms      L1 {facts['l1_max']:.5g}, L2 {facts['l2_max']:.5g}, Linf {facts['linf_max']:.5g}"
    )
    fraction = facts["ellipsoid_fraction"]
    if fraction is not None:
        print(f"norm ellipsoid     furthest state at {fraction:.6f} of its surface (1: on it)")
    print(
        f"pairwise cosines   mean {facts['mean_cos']:.4f} (all pairs, exact); smallest"
        f" {facts['kept_min_cos']:.4f}\n"
        f"                   in a uniform sample of {facts['kept']}, at least"
        f" {facts['min_cos_bound']:.4f} over all states"
    )
    print(
        f"enclosing cone     half-angle {facts['half_angle']:.4f} rad (about the mean direction"
        f" {facts['mean_angle']:.4f});\n"
        f"                   none that holds all states is below {facts['least_half_angle']:.4f}"
    )
    print(f"\nHow limits move ({dtype}, tokens per vector; eps follows Linf, so C may also fall)")
    print(f"{'by':<9}{'value':>8}{'L2':>10}{'Linf':>10}{'mean cos':>10}{'box':>10}{'box+ellipsoid':>15}")
    for row in sorted(growth, key=lambda row: (row["by"], row["value"])):
        both = row["box_and_ellipsoid"]
        print(
            f"{row['by']:<9}{row['value']:>8}{row['l2_max']:>10.4g}{row['linf_max']:>10.4g}"
            f"{row['mean_cos']:>10.4f}{row['box']:>10.2f}{'-' if both is None else f'{both:.2f}':>15}"
        )
