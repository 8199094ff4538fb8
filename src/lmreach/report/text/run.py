"""What a run found, as lines."""

from collections.abc import Iterator

from lmreach.report.text.census import census_lines
from lmreach.report.text.copying import copying_lines
from lmreach.report.text.study import study_lines
from lmreach.results.census import CensusResults
from lmreach.results.copying import CopyResults
from lmreach.results.run import RunResults
from lmreach.results.study import StudyResults

__all__ = ["run_lines"]


def run_lines(found: RunResults) -> Iterator[str]:
    """Give what the command of the run prints at its end."""
    if isinstance(found, StudyResults):
        yield from study_lines(found)
        return
    if isinstance(found, CensusResults):
        yield from census_lines(found.census)
    elif isinstance(found, CopyResults):
        yield from copying_lines(found)
    if found.folder is not None:
        yield ""
        yield f"report: {found.folder / 'report.html'}"
