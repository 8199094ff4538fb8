"""How one value becomes text: numbers, intervals, durations, and tokens shown as they are."""

import math
import unicodedata
from typing import Any, TypeGuard

from markupsafe import Markup, escape

NOT_KNOWN = "n/a"
_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_BIDI = {*range(0x202A, 0x202F), *range(0x2066, 0x206A), 0x200E, 0x200F, 0x061C}


def number(value: Any, digits: int = 3) -> str:
    """Write a number with ``digits`` significant figures; digits before the point are never rounded away.

    Parameters
    ----------
    value
        A number, a bool, or None. ``None`` and nan become ``n/a``, infinities become a word.
    digits
        Significant figures of a fraction; 5.4 gives ``5.40``, 6388.23 gives ``6,388``.
    """
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if value is None or value != value:  # nan is the one value that differs from itself  # noqa: PLR0124
        return NOT_KNOWN
    if not isinstance(value, float):
        return str(value)
    if math.isinf(value):
        return "infinity" if value > 0 else "-infinity"
    return _finite(value, digits)


def _finite(value: float, digits: int) -> str:
    size = abs(value)
    if size == 0:
        return "0"
    if not 1e-4 <= size < 1e9:
        mantissa, exponent = f"{value:.{digits - 1}e}".split("e")
        return f"{mantissa}e{int(exponent)}"
    return f"{value:,.{max(0, digits - 1 - math.floor(math.log10(size)))}f}"


def prose(value: Any) -> str:
    """Write a number as a sentence would carry it: two significant figures, whole part kept."""
    return number(value, 2)


def is_number(value: Any) -> TypeGuard[float]:
    """Say whether ``value`` is a finite number (bools are not)."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def interval(low: Any, high: Any, digits: int = 3) -> str:
    """Write an interval; an end that is not known is named, not dropped."""
    known = is_number(low), is_number(high)
    if known == (False, False):
        return "no interval"
    if known == (True, False):
        return f"from {number(low, digits)}, upper end not known"
    if known == (False, True):
        return f"up to {number(high, digits)}, lower end not known"
    return f"{number(low, digits)} to {number(high, digits)}"


def percent(share: Any) -> str:
    """Write a confidence such as 0.95 as ``95 %``."""
    return f"{share * 100:g} %" if is_number(share) else "stated"


def hundredths(share: float) -> str:
    """Write a share as a percentage with two significant figures: ``8.7 %``, ``100 %``, ``6.3e-5 %``."""
    value = 100 * share
    if value >= 99.5:
        return f"{value:.0f} %"
    return f"{value:.2g} %" if value >= 1e-4 or value == 0 else f"{number(value, 2)} %"


def duration(seconds: Any) -> str:
    """Write seconds as hours, minutes and seconds."""
    if not is_number(seconds):
        return number(seconds)
    if seconds < 60:
        return f"{number(float(seconds))} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    text = f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"
    return text.replace(" ", "\u00a0")


def power(log_value: float) -> str:
    """Write exp(``log_value``) (nats) in powers of e and of ten, without ever forming it."""
    raised = [f"{value:.0f}".translate(_RAISED) for value in (log_value / math.log(10), log_value)]
    return f"10{raised[0]} (e{raised[1]})"


def plain(text: str) -> str:
    """Make any string safe to draw: one line, with unprintable characters written as escapes."""
    return "".join("↵" if char == "\n" else "→" if char == "\t" else _printable(char) for char in text)


def literal(text: str) -> Markup:
    r"""Mark up a token or text so that a reader sees every character of it and the page holds it unchanged.

    Newlines and tabs stay in the document; a style rule makes them visible. What HTML cannot hold (NUL,
    carriage returns, lone surrogates, other controls) or what would reorder the line (bidi controls) is
    written ``\x..``.
    """
    if not text:
        return Markup('<code class="token empty"></code>')
    return Markup('<code class="token">{}</code>').format(Markup("").join(map(_shown, text)))


def _shown(char: str) -> Markup:
    if char in _WHITESPACE:
        return _WHITESPACE[char]
    printable = _printable(char)
    if printable == char:
        return escape(char)
    return Markup('<span class="escape">{}</span>').format(printable)


_WHITESPACE = {
    "\n": Markup('<span class="newline">\n</span>'),
    "\t": Markup('<span class="tab">\t</span>'),
}


def _printable(char: str) -> str:
    code = ord(char)
    hidden = unicodedata.category(char) in {"Cc", "Cs", "Zl", "Zp"} or code in _BIDI
    # Noncharacters such as U+FFFE are parse errors in HTML and not allowed in XML.
    if hidden or (code & 0xFFFE) == 0xFFFE or 0xFDD0 <= code <= 0xFDEF:
        return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
    return char
