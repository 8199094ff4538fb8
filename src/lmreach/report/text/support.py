"""A measured support, and how it grew, as tables."""

from collections.abc import Iterator

from lmreach.results.support import SupportResults

__all__ = ["support_lines"]


def support_lines(found: SupportResults) -> Iterator[str]:
    """Give radii, cosines and angles, and how radii and limits moved with states and prompt length."""
    yield f"{found.model}: {found.samples} final hidden states"
    yield f"prompts            {', '.join(found.kinds)}"
    yield f"lengths            {_lengths(found)}"
    yield f"largest norms      L1 {found.l1_max:.5g}, L2 {found.l2_max:.5g}, Linf {found.linf_max:.5g}"
    if found.ellipsoid_fraction is not None:
        yield f"norm ellipsoid     furthest state at {found.ellipsoid_fraction:.6f} of its surface (1: on it)"
    mean, least = f"mean {found.mean_cos:.4f} (all pairs, exact)", f"smallest {found.kept_min_cos:.4f}"
    yield f"pairwise cosines   {mean}; {least}"
    bound = f"{found.min_cos_bound:.4f} over all states"
    yield f"                   in a uniform sample of {found.kept}, at least {bound}"
    about = f"about the mean direction {found.mean_angle:.4f}"
    yield f"enclosing cone     half-angle {found.half_angle:.4f} rad ({about});"
    yield f"                   none that holds all states is below {found.least_half_angle:.4f}"
    yield ""
    yield from _growth(found)


def _lengths(found: SupportResults) -> str:
    """Say how long prompts were, and why no longer."""
    shown = ", ".join(str(n) for n in found.lengths)
    if found.lengths_end_at == "context":
        return f"{shown} (the context)"
    limit = "no context limit" if found.context is None else f"context {found.context}"
    if found.lengths_end_at == "asked":
        return f"{shown} (asked for; {limit})"
    return f"{shown} (as far as --positions affords; {limit})"


def _growth(found: SupportResults) -> Iterator[str]:
    yield f"How limits move ({found.limit_dtype}, tokens per vector; eps follows Linf, so C may also fall)"
    names = f"{'L2':>10}{'Linf':>10}{'mean cos':>10}{'box':>10}{'box+ellipsoid':>15}"
    yield f"{'by':<9}{'value':>8}{'states':>8}{names}"
    for row in sorted(found.growth, key=lambda row: (row.by, row.value)):
        both = "-" if row.box_and_ellipsoid is None else f"{row.box_and_ellipsoid:.2f}"
        yield (
            f"{row.by:<9}{row.value:>8}{row.states:>8}{row.l2_max:>10.4g}{row.linf_max:>10.4g}"
            f"{row.mean_cos:>10.4f}{row.box:>10.2f}{both:>15}"
        )
