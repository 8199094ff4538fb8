"""A study in sentences, and where its report lies."""

from collections.abc import Iterator

from lmreach.report.study.words import headline
from lmreach.results.study import StudyResults

__all__ = ["study_lines"]


def study_lines(found: StudyResults) -> Iterator[str]:
    """Give the headline of the report, and how to read on."""
    yield from headline(found)
    if found.folder is not None:
        yield ""
        yield f"report: {found.folder / 'report.html'}"
        yield f"check:  lmreach verify {found.folder}"
