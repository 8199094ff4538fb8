"""What pydantic found wrong with a value, in words for whoever typed it."""

from typing import Any

from lmreach.config.written import shortened

__all__ = ["shown", "wanted"]

# What pydantic found wrong -> what was expected.
_EXPECTED = {
    "greater_than_equal": "of at least {ge}",
    "greater_than": "above {gt}",
    "less_than_equal": "of at most {le}",
    "less_than": "below {lt}",
    "too_short": "with at least {min_length} of them",
    "too_long": "with at most {max_length} of them",
    "literal_error": "as {expected}",
    "finite_number": "as a finite number",
    "missing": "given",
    "extra_forbidden": "left out, for there is no such setting",
}
_KINDS = {
    "int": "as a whole number",
    "float": "as a number",
    "bool": "as true or false",
    "string": "as text",
    "tuple": "as a list",
    "model": "as a table of settings",
    "dict": "as a table of settings",
}


def shown(value: Any) -> str:
    """Return a value as it was typed; one without a visible form in quotes."""
    text = str(value)
    return shortened(text if isinstance(value, str | int | float) and text.strip() else repr(value))


def wanted(detail: Any) -> str:
    """Return what was expected of a value, to stand behind its option's name.

    Parameters
    ----------
    detail
        One of pydantic's ``errors()``.
    """
    said: str = detail["type"]
    if said in _EXPECTED:
        numbers = {k: f"{v:g}" if isinstance(v, int | float) else v for k, v in detail.get("ctx", {}).items()}
        return _EXPECTED[said].format(**numbers)
    if said == "value_error":
        return f"as follows: {detail['ctx']['error']}"
    return _KINDS.get(said.split("_", maxsplit=1)[0], f"so that {detail['msg'].lower()}")
