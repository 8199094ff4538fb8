"""The console as it is: whatever it cannot show is shown in another way, and never ends a command."""

import codecs
import sys

__all__ = ["show_anything"]

_ERRORS = "lmreach-escape"


def show_anything() -> None:
    r"""Let standard output and error take every text, whatever their encoding.

    What an encoding lacks (a console in cp1252, ``LC_ALL=C``) is written as JSON escapes it, so that JSON
    that is printed stays JSON; a plain ``backslashreplace`` would write ``\U0001f600``, which it is not.
    """
    codecs.register_error(_ERRORS, _escaped)
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors=_ERRORS)


def _escaped(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    missing = error.object[error.start : error.end]
    units = missing.encode("utf-16-be", "surrogatepass")
    pairs = zip(units[::2], units[1::2], strict=True)
    return "".join(f"\\u{high:02x}{low:02x}" for high, low in pairs), error.end
