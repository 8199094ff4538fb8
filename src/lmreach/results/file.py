"""results.json in and out: parsed into objects, whatever version of lmreach wrote it."""

from json import loads
from pathlib import Path
from typing import Annotated

from pydantic import Field, TypeAdapter, ValidationError

from lmreach.errors import InputError, OutputError, problem
from lmreach.results.answers import ReachabilityResults
from lmreach.results.census import CensusResults
from lmreach.results.copying import CopyResults
from lmreach.results.study import StudyResults
from lmreach.results.upgrade import upgrade

__all__ = ["AnyResults", "open_results", "parse"]

AnyResults = StudyResults | CensusResults | CopyResults | ReachabilityResults
_ANY: TypeAdapter[AnyResults] = TypeAdapter(Annotated[AnyResults, Field(discriminator="kind")])


def parse(raw: object) -> AnyResults:
    """Return the results that a parsed results.json holds.

    Raises
    ------
    InputError
        It is no results.json, one of a later version, or a part of it is missing or of another kind.
    """
    current = upgrade(raw)
    try:
        return _ANY.validate_python(current)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"][1:])) or "the whole"
        got = f"{place}: {first['msg'][:1].lower()}{first['msg'][1:]}"
        raise InputError(
            problem("whole results of a run", got, "write them again with 'lmreach resume'")
        ) from error


def open_results(path: str | Path) -> AnyResults:
    """Read the results.json of a run.

    Parameters
    ----------
    path
        The file, or the run's folder.

    Raises
    ------
    OutputError
        It is missing or no JSON.
    InputError
        As `parse`.
    """
    file = Path(path)
    file = file / "results.json" if file.is_dir() else file
    try:
        raw = loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise OutputError(
            problem(f"a readable {file.name}", f"'{file}': {error}", "write it again with 'lmreach resume'")
        ) from error
    return parse(raw).read_from(file.parent)
