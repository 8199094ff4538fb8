"""Words that cannot be meant: refused before anything heavy is imported, in the command line's own names."""

from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from cyclopts import App, CoercionError, CycloptsError, MissingArgumentError, UnusedCliTokensError
from cyclopts.argument import ArgumentCollection
from pydantic import ValidationError

from lmreach.config.given import explained
from lmreach.config.settings import Settings
from lmreach.config.targets import TargetKind
from lmreach.config.written import whole_number
from lmreach.errors import InputError, problem

__all__ = ["check", "check_numbers", "said"]

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


def check_numbers(_app: App, _commands: tuple[str, ...], arguments: ArgumentCollection) -> None:
    """Refuse numbers that the library would read its own way: 1_0 as 10, 2.7 as 3, 0x10 as 16.

    Raises
    ------
    InputError
        Naming the option.
    """
    for argument in arguments:
        kinds = _kinds_of(argument.hint)
        if argument.parameter.converter is not None or not kinds <= {int, float, NoneType}:
            continue
        whole = float not in kinds
        for token in argument.tokens:
            word = token.value
            if NoneType in kinds and word.lower() in ("none", "null"):
                continue
            if "_" in word or (whole and whole_number(word) is None):
                expected = f"{'/'.join(argument.names)} as a {'whole ' if whole else ''}number"
                raise InputError(problem(expected, word, "see --help"))


def _kinds_of(hint: Any) -> set[Any]:
    """Return the types of single values that an option takes."""
    if get_origin(hint) is Annotated:
        return _kinds_of(get_args(hint)[0])
    if get_origin(hint) in (Union, UnionType, tuple, list):
        return set().union(*(_kinds_of(inner) for inner in get_args(hint) if inner is not Ellipsis))
    return {hint}


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
