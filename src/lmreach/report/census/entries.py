"""How the numbers of a census are written."""

import math

from lmreach.report.kit.format import number

__all__ = ["prompts_of", "rough"]

_WORDS = ((1e12, "trillion"), (1e9, "billion"), (1e6, "million"))


def prompts_of(tokens: int) -> str:
    """Name the prompts of so many tokens."""
    return "prompts of 1 token" if tokens == 1 else f"prompts of {tokens} tokens"


def rough(value: float) -> str:
    """Write a count for a reader: in full up to a million, in words up to 10^15, then as a power of ten."""
    if value < 999_999.5:
        return number(round(value))
    if value >= 1e15:
        return f"10^{math.log10(value):.0f}"
    unit, word = next((unit, word) for unit, word in _WORDS if value >= unit * 0.9995)
    return f"{value / unit:.3g} {word}"
