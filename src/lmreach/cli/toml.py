"""Settings from a TOML file, and settings as TOML."""

import tomllib
from collections.abc import Callable, Iterable, Iterator, Sequence
from json import dumps
from pathlib import Path
from typing import Any

from cyclopts import App, Parameter
from cyclopts.argument import ArgumentCollection, update_argument_collection

from lmreach.config.given import options
from lmreach.config.settings import Settings
from lmreach.config.written import as_written
from lmreach.errors import InputError, problem

__all__ = ["FromFile", "line", "lines", "models_in", "without_file"]

_MODELS = "models"
FromFile = Callable[[App, tuple[str, ...], ArgumentCollection], None]


def from_file(file: str, kinds: Iterable[type[Settings]]) -> FromFile:
    """Return what a command line is completed with: the settings of a file, under the names options have.

    Parameters
    ----------
    kinds
        Configs of the command: a setting may be called by the name it has there, too.

    Raises
    ------
    InputError
        The file cannot be read, or is no TOML.
    """
    path = Path(file)
    try:
        settings = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        got = f"'{file}': {getattr(error, 'strerror', None) or error}"
        raise InputError(
            problem("a TOML file for --config", got, "see 'lmreach config show COMMAND'")
        ) from error
    settings.pop(_MODELS, None)
    flags = {name: option.flag for kind in kinds for option in options(kind) for name in option.names}
    named = {flags.get(name.replace("-", "_"), name): value for name, value in settings.items()}

    # The library's own reader drops settings that are called like a command, such as cells.
    def complete(_app: App, _commands: tuple[str, ...], arguments: ArgumentCollection) -> None:
        update_argument_collection(named, path.name, arguments, root_keys=(), allow_unknown=False)

    return complete


def models_in(file: str) -> list[str]:
    """Return the models that a file lists for a study of several, if it lists any.

    Raises
    ------
    InputError
        Anything but names.
    """
    path = Path(file)
    try:
        listed = tomllib.loads(path.read_text(encoding="utf-8")).get(_MODELS, [])
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError):
        return []  # whoever reads the settings says so
    if not isinstance(listed, list) or not all(isinstance(name, str) and name for name in listed):
        raise InputError(problem("a list of names for models", repr(listed), 'write models = ["A", "B"]'))
    return listed


def without_file(words: Sequence[str]) -> tuple[list[str], str | None]:
    """Return the words of a command line without ``--config FILE``, and the file.

    Raises
    ------
    InputError
        No file is named, or two are.
    """
    rest, files = [], []
    left = iter(words)
    for word in left:
        if word == "--config":
            files.append(next(left, ""))
        elif word.startswith("--config="):
            files.append(word.partition("=")[2])
        else:
            rest.append(word)
    if len(files) > 1 or "" in files:
        got = "none" if "" in files else " and ".join(files)
        raise InputError(problem("one file after --config", got, "write --config FILE.toml once"))
    return rest, files[0] if files else None


def lines(config: Settings) -> Iterator[str]:
    """Give the settings of a config as lines of TOML, each under what it means."""
    for option in options(type(config)):
        yield f"# {' '.join((option.field.description or '').split())}"
        left_open = config.of_a_preset and option.path[0] not in config.model_fields_set
        yield line(option.flag, None if left_open else option.value(config), option.parameter)


def line(flag: str, value: Any, parameter: Parameter) -> str:
    """Write one setting as TOML, a comment where it is not set."""
    name, spoken = flag.replace("-", "_"), parameter.show_default
    if parameter.converter is as_written and callable(spoken) and not isinstance(value, str):
        value = spoken(value)
    return f"# {name} is not set" if value is None else f"{name} = {_text(value)}"


def _text(value: Any) -> str:
    if isinstance(value, tuple | list):
        return f"[{', '.join(map(_text, value))}]"
    # What JSON says of strings, numbers and truth, TOML says likewise.
    return dumps(value, ensure_ascii=False)
