"""Settings of a command as a file."""

import inspect
from collections.abc import Callable
from importlib import import_module
from typing import Annotated, Any, get_args, get_type_hints

from cyclopts import App, Parameter

from lmreach.cli.toml import from_file, line, lines, without_file
from lmreach.config.settings import Settings
from lmreach.errors import InputError, problem

__all__ = ["config", "function_of", "kinds_of"]

config = App(name="config", help="Settings of a command, as a file for --config.", help_format="plaintext")


@config.command
def show(
    command: str,
    /,
    *words: Annotated[str, Parameter(allow_leading_hyphen=True)],
) -> int:
    """Print the settings a command would run with, as TOML that --config takes.

    Parameters
    ----------
    command
        Such as study.
    words
        Options of that command, --config FILE.toml among them.
    """
    function = function_of(command)
    own, file = without_file(words)
    app = App(name=f"lmreach {command}", result_action="return_value")
    app.default(_without_required(function))
    if file is not None:
        app.config = (from_file(file, kinds_of(function)),)
    given: dict[str, Any] = app(own, exit_on_error=False, print_error=False)
    hints = get_type_hints(function, include_extras=True)
    for name, value in given.items():
        if isinstance(value, Settings):
            for setting in lines(value):
                print(setting)
        else:
            print(line(name, value or None, _parameter(hints[name])))
    return 0


def function_of(command: str) -> Callable[..., int]:
    """Return the function of a command that has settings.

    Raises
    ------
    InputError
        There is none of that name.
    """
    from lmreach.cli import COMMANDS

    if command not in COMMANDS:
        raise InputError(problem(f"one of {', '.join(COMMANDS)}", repr(command), "name a command"))
    name = command.replace("-", "_")
    function: Callable[..., int] = getattr(import_module(f"lmreach.cli.{name}"), name)
    return function


def kinds_of(function: Callable[..., int]) -> list[type[Settings]]:
    """Return the configs that a command takes."""
    hints = get_type_hints(function, include_extras=True).values()
    bare = [get_args(hint)[0] if hasattr(hint, "__metadata__") else hint for hint in hints]
    return [kind for kind in bare if isinstance(kind, type) and issubclass(kind, Settings)]


def _parameter(hint: Any) -> Parameter:
    extras = getattr(hint, "__metadata__", ())
    return Parameter.combine(*(extra for extra in extras if isinstance(extra, Parameter)))


def _without_required(function: Callable[..., int]) -> Callable[..., dict[str, Any]]:
    """Return a function of the same options that asks for none of them, and gives back what it was given.

    What a command has to be given is a word: a model, a folder, a file.
    """
    signature = inspect.signature(function)
    optional = [
        parameter.replace(default="")
        if parameter.default is parameter.empty and parameter.kind is not parameter.VAR_POSITIONAL
        else parameter
        for parameter in signature.parameters.values()
    ]

    def given(*arguments: Any, **named: Any) -> dict[str, Any]:
        bound = inspect.Signature(optional).bind(*arguments, **named)
        bound.apply_defaults()
        positional = {p.name for p in optional if p.kind in (p.POSITIONAL_ONLY, p.VAR_POSITIONAL)}
        return {name: value for name, value in bound.arguments.items() if name not in positional}

    given.__signature__ = inspect.Signature(optional)  # type: ignore[attr-defined]
    given.__annotations__ = function.__annotations__
    given.__doc__ = function.__doc__
    return given
