"""From names and values, as typed in Python or in a file, to a config: one vocabulary for all ways in."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, TypeVar

from cyclopts import Parameter
from pydantic import ValidationError
from pydantic.fields import FieldInfo

from lmreach.config.settings import Settings
from lmreach.config.wording import shown, wanted
from lmreach.errors import InputError, problem

__all__ = ["Option", "configure", "explained", "options"]

Config = TypeVar("Config", bound=Settings)


@dataclass(frozen=True, slots=True)
class Option:
    """One setting of a config, wherever in it the setting stands.

    Attributes
    ----------
    path
        Names of the fields that lead to it, such as ``("cram", "max_steps")``.
    names
        What it may be called in Python and in files: its field's name and those on the command line.
    flag
        Its long name on the command line, without dashes.
    field
        What pydantic knows of it.
    parameter
        How the command line reads it.
    """

    path: tuple[str, ...]
    names: tuple[str, ...]
    flag: str
    field: FieldInfo
    parameter: Parameter

    @property
    def typed(self) -> str:
        """Its names as typed on the command line, such as ``-m/--vectors``."""
        given = [word for word in self.parameter.name or () if word.startswith("-")]
        return "/".join(given) or f"--{self.flag}"

    def value(self, config: Settings) -> Any:
        """Return what a config holds here."""
        held: Any = config
        for name in self.path:
            held = getattr(held, name)
        return held


def options(config: type[Settings]) -> Iterator[Option]:
    """Give every setting of a config, those of the configs inside it among them, in order."""
    for name, field in config.model_fields.items():
        parameter = _parameter(field)
        inner = field.annotation
        if parameter.name == ("*",):
            assert isinstance(inner, type)
            assert issubclass(inner, Settings)
            for option in options(inner):
                yield Option((name, *option.path), option.names, option.flag, option.field, option.parameter)
        elif parameter.parse is not False:
            given = parameter.name or ()
            words = [word.lstrip("-").replace("-", "_") for word in given if word.startswith("--")]
            flag = words[0] if words else name
            short = [word.lstrip("-") for word in given if not word.startswith("--")]
            names = tuple(dict.fromkeys((name, flag, *words, *short)))
            yield Option((name,), names, flag.replace("_", "-"), field, parameter)


def _parameter(field: FieldInfo) -> Parameter:
    return Parameter.combine(*(item for item in field.metadata if isinstance(item, Parameter)))


def configure(kind: type[Config], config: Config | None, given: Mapping[str, Any]) -> Config:
    """Return a config with some settings replaced.

    Parameters
    ----------
    kind
        Its class.
    config
        Where the other settings come from; None: the defaults.
    given
        Settings by their names, of the configs inside it as well: ``max_steps`` stands for that of ``cram``.

    Raises
    ------
    InputError
        For a name that is none, or a value that does not fit.
    """
    if config is not None and not isinstance(config, kind):
        got = f"a {type(config).__name__}"
        raise InputError(problem(f"a {kind.__name__}", got, "give its settings by name, or that object"))
    if config is not None and not given:
        return config
    places = {name: option.path for option in options(kind) for name in option.names}
    values: dict[str, Any] = {} if config is None else config.model_dump(exclude_unset=True)
    for name, value in given.items():
        if name in kind.model_fields and name not in places:  # a whole config inside this one
            values[name] = value.model_dump(exclude_unset=True) if isinstance(value, Settings) else value
    for name, value in given.items():
        if name in places:
            *outer, last = places[name]
            at = values
            for step in outer:
                at = at.setdefault(step, {})
            at[last] = value
        elif name not in kind.model_fields:
            raise InputError(_unknown(name, [*places, *kind.model_fields], kind.__name__))
    try:
        return kind.model_validate(values)
    except ValidationError as error:
        raise InputError(explained(error)) from error


def _unknown(name: str, known: list[str], kind: str) -> str:
    near = get_close_matches(name, known, n=1)
    remedy = f"did you mean '{near[0]}'?" if near else f"see help(lmreach.{kind})"
    return problem(f"a setting of {kind}", f"'{name}'", remedy)


def explained(error: ValidationError) -> str:
    """Return one line: what was expected of which option, what came, and where to look."""
    wrong = [detail for detail in error.errors() if detail["loc"]]
    if not wrong:
        reasons = [str(detail.get("ctx", {}).get("error", detail["msg"])) for detail in error.errors()]
        return problem("settings that go together", "; ".join(reasons), "see --help")
    kind = _config(error.title)
    flags = {} if kind is None else {option.path: option.typed for option in options(kind)}
    # The first of each option: a list whose only value does not fit is not also too short.
    by_option = {_option_name(flags, detail["loc"]): detail for detail in reversed(wrong)}
    expected = [f"{name} {wanted(detail)}" for name, detail in reversed(by_option.items())]
    got = [shown(detail["input"]) for detail in reversed(by_option.values())]
    return problem(", ".join(expected), ", ".join(got), "see --help")


def _option_name(flags: Mapping[tuple[str, ...], str], place: tuple[int | str, ...]) -> str:
    """Return how the setting at a place is typed; places go on into lists and kinds of values."""
    path = tuple(step for step in place if isinstance(step, str))
    known = next((flags[path[:end]] for end in range(len(path), 0, -1) if path[:end] in flags), None)
    return known or f"--{(path or ('settings',))[-1].replace('_', '-')}"


def _config(title: str) -> type[Settings] | None:
    """Return the config that a failure is titled by; one with checks of its own stands in their brackets."""
    name = title.rstrip("]").rsplit(" ", 1)[-1]
    left = list(Settings.__subclasses__())
    while left:
        kind = left.pop()
        if kind.__name__ == name:
            return kind
        left += kind.__subclasses__()
    return None
