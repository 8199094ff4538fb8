"""The tables that `lmreach support` prints."""

from typing import Any


def _lengths(facts: dict[str, Any]) -> str:
    """Say how long prompts were, and why no longer."""
    shown = ", ".join(str(n) for n in facts["lengths"])
    if facts["lengths_end_at"] == "context":
        return f"{shown} (the context)"
    context = facts["context"]
    limit = "no context limit" if context is None else f"context {context}"
    if facts["lengths_end_at"] == "asked":
        return f"{shown} (asked for; {limit})"
    return f"{shown} (as far as --positions affords; {limit})"


def print_support(facts: dict[str, Any]) -> None:
    """Print what a support file holds, arrays excepted."""
    print(f"{facts['model']}: {facts['samples']} final hidden states")
    print(f"prompts            {', '.join(facts['kinds'])}")
    print(f"lengths            {_lengths(facts)}")
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


def print_growth(growth: list[dict[str, Any]], dtype: str) -> None:
    """Print how radii, mean cosine and limits moved with the number of states and with prompt length."""
    print(f"\nHow limits move ({dtype}, tokens per vector; eps follows Linf, so C may also fall)")
    names = f"{'L2':>10}{'Linf':>10}{'mean cos':>10}{'box':>10}{'box+ellipsoid':>15}"
    print(f"{'by':<9}{'value':>8}{'states':>8}{names}")
    for row in sorted(growth, key=lambda row: (row["by"], row["value"])):
        both = row["box_and_ellipsoid"]
        print(
            f"{row['by']:<9}{row['value']:>8}{row['states']:>8}{row['l2_max']:>10.4g}{row['linf_max']:>10.4g}"
            f"{row['mean_cos']:>10.4f}{row['box']:>10.2f}{'-' if both is None else f'{both:.2f}':>15}"
        )
