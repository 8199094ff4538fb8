"""The first screen says what a run lacks."""

from lmreach.report.study.summary import notices
from lmreach.results import StudyResults
from lmreach.results.run import NotDone

from .. import sample

LEFT = NotDone(what="20 strings of random m=4", why="the budget was spent")


def left_out(results: StudyResults, *what: NotDone) -> StudyResults:
    return results.model_copy(update={"not_done": what})


def thin(results: StudyResults) -> StudyResults:
    first, *rest = results.accessibility
    few = first.model_copy(update={"finished": 4, "strings": 4, "trials": None})
    return results.model_copy(update={"accessibility": (few, *rest)})


def test_a_run_that_its_budget_ended_says_so_and_how_to_go_on() -> None:
    (said,) = notices(left_out(sample.study(), LEFT, LEFT))
    assert said.lead == "The budget ended this run."
    assert said.text.startswith("40 of the strings")
    assert said.command.startswith("lmreach resume RUN")


def test_a_thin_run_is_preliminary() -> None:
    (said,) = notices(left_out(thin(sample.study())))
    assert said.lead == "Preliminary:"
    assert said.text.startswith("4 strings a point: an interval needs 6.")
    (said,) = notices(left_out(thin(sample.study()), LEFT))
    assert said.text.startswith("4 strings a point, where the budget ended this run")


def test_what_was_not_asked_for_is_no_notice() -> None:
    other = NotDone(what="decoder cells", why="not asked for")
    failed = NotDone(what="2 strings of random m=4 failed and do not count", why="their loss was no number")
    assert notices(left_out(sample.study(), other, failed)) == ()


def test_an_interrupted_run_says_only_that() -> None:
    results = left_out(sample.study(), LEFT)
    stopped = results.provenance.model_copy(update={"interrupted": True})
    (said,) = notices(results.model_copy(update={"provenance": stopped}))
    assert said.lead == "This run was interrupted."
