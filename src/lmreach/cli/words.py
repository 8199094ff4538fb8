"""Words that cannot be meant: refused before anything heavy is imported, in the command line's own names."""

from typing import Any, Literal, get_args, get_origin

from cyclopts import CoercionError, CycloptsError, MissingArgumentError, UnusedCliTokensError
from pydantic import ValidationError

from lmreach.config.given import explained
from lmreach.config.settings import Settings
from lmreach.config.targets import TargetKind
from lmreach.errors import problem

__all__ = ["check", "said"]

_KINDS = {int: "a whole number", float: "a number", bool: "true or false"}


def check(*given: Any, **named: Any) -> None:
    """Refuse a model or a file of targets that is not there, whatever the command.

    Raises
    ------
    LmreachError
        Naming it.
    """
    from lmreach.models.resolve import find

    if isinstance(named.get("model"), str):
        find(named["model"])
    configs = [vars(value) for value in (*given, *named.values()) if isinstance(value, Settings)]
    for holder in (named, *configs):
        for kind in holder.get("targets") or ():
            TargetKind.parse(kind).require_file()
        target = holder.get("target")
        if isinstance(target, str):
            TargetKind.parse(target).require_file()


def said(error: CycloptsError, words: list[str]) -> str:
    """Return one line on words that do not fit a command."""
    command = f"lmreach {words[0]}" if words and not words[0].startswith("-") else "lmreach"
    if isinstance(error.__cause__, ValidationError):
        return explained(error.__cause__)
    if any(word.partition("=")[0] == "--model" for word in words):
        return problem(f"an option of {command}", "--model", "the model stands without one: see --help")
    if isinstance(error, UnusedCliTokensError):
        left = [str(word) for word in error.unused_tokens or ()]
        remedy = f"see {command} --help"
        return problem(f"options after {command}", f"the word {' '.join(left)!r}", remedy)
    if isinstance(error, CoercionError) and error.token is not None:
        name = error.token.keyword or (error.argument.name.lstrip("-").upper() if error.argument else "it")
        expected = f"{_kind(error.target_type)} for {name}"
        return problem(expected, repr(error.token.value), f"see {command} --help")
    if isinstance(error, MissingArgumentError) and error.argument is not None:
        name = error.argument.name
        name = name if name.startswith("-") else name.upper()
        return problem(f"{name} after {command}", "none", f"see {command} --help")
    return str(error)


def _kind(wanted: Any) -> str:
    if get_origin(wanted) is Literal:
        return f"one of {', '.join(str(one) for one in get_args(wanted))}"
    for inner in (wanted, *get_args(wanted)):
        if inner in _KINDS:
            return _KINDS[inner]
    return "a value that fits"
