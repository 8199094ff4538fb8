"""The results inside the page: strict JSON that no HTML parser can mistake for markup."""

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup

from lmreach.errors import InputError, problem

# "<" would end or open markup, "&" is kept out for XML readers, the separators for old JavaScript parsers.
_ESCAPES = {ord(char): f"\\u{ord(char):04x}" for char in "<>&\u2028\u2029"}


def strict(value: Any) -> Any:
    """Return ``value`` with only what JSON can say: nan becomes null, infinities become a word.

    Raises
    ------
    InputError
        For a value that is no JSON type (an array, a path, ...).
    """
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else "infinity" if value > 0 else "-infinity"
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if isinstance(value, Mapping):
        return {str(key): strict(item) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, bytes | bytearray):
        return [strict(item) for item in value]
    got = type(value).__name__
    raise InputError(problem("only JSON values in the results", got, "convert it before rendering"))


def as_json(value: Any, indent: int | None = None) -> str:
    """Write ``value`` as ASCII JSON (lone surrogates included, as escapes)."""
    return json.dumps(strict(value), allow_nan=False, ensure_ascii=True, indent=indent)


def script_text(value: Any) -> Markup:
    r"""Write ``value`` as JSON for a ``<script type="application/json">`` element (``<`` as ``\u003c``)."""
    return Markup(as_json(value).translate(_ESCAPES))  # noqa: S704  (every character HTML reads is escaped above)
