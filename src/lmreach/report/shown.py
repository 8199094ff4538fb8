"""How a result shows itself: in words, as a section of a page, as charts."""

from collections.abc import Iterable, Iterator
from functools import singledispatch
from typing import TYPE_CHECKING, Any

from markupsafe import escape

from lmreach.report.text.bounds import bounds_lines
from lmreach.report.text.cells import cells_lines
from lmreach.report.text.certificates import decoded_lines, judgement_lines, verification_lines
from lmreach.report.text.compare import comparison_lines
from lmreach.report.text.plan import plan_lines
from lmreach.report.text.reachability import reachability_lines
from lmreach.report.text.status import status_lines
from lmreach.report.text.support import support_lines
from lmreach.results import AnyResults
from lmreach.results.answers import CellsResults, ReachabilityResults
from lmreach.results.bounds import BoundsResults
from lmreach.results.certificates import DecodedCertificate, Judgement, Verification
from lmreach.results.compare import Comparison
from lmreach.results.plan import PlanResults
from lmreach.results.run import RunResults
from lmreach.results.shown import Shown
from lmreach.results.status import RunStatus
from lmreach.results.support import SupportResults

if TYPE_CHECKING:
    import altair as alt

    from lmreach.report.kit.drawing import Figure

__all__ = ["charts", "html", "text"]


def text(result: Shown) -> str:
    """Return what was found, in words: the lines that the command line prints."""
    return "\n".join(_lines(result))


@singledispatch
def _lines(result: Shown) -> Iterator[str]:
    yield f"{type(result).__name__} of {len(result.rows())} rows"


_lines.register(BoundsResults, bounds_lines)
_lines.register(CellsResults, cells_lines)
_lines.register(DecodedCertificate, decoded_lines)
_lines.register(Judgement, judgement_lines)
_lines.register(PlanResults, plan_lines)
_lines.register(Comparison, comparison_lines)
_lines.register(ReachabilityResults, reachability_lines)
_lines.register(RunStatus, status_lines)
_lines.register(SupportResults, support_lines)
_lines.register(Verification, verification_lines)


@_lines.register(RunResults)
def _(result: RunResults) -> Iterator[str]:
    from lmreach.report.text.run import run_lines  # brings altair

    return run_lines(result)


@singledispatch
def html(result: Shown) -> str:
    """Return the section of a page that shows a result; one without a section of its own shows its lines."""
    return f"<pre>{escape(text(result))}</pre>"


@html.register(RunResults)
def _(result: RunResults) -> str:
    from lmreach.report.section import section_of

    return section_of(result)


@html.register(ReachabilityResults)
def _(result: ReachabilityResults) -> str:
    return f"<pre>{escape(text(result))}</pre>"


@html.register(Comparison)
def _(result: Comparison) -> str:
    from lmreach.report.section import section_of

    return section_of(result)


@html.register(CellsResults)
def _(result: CellsResults) -> str:
    from lmreach.report.section import section_of

    return section_of(result)


def charts(result: Shown) -> "dict[str, alt.LayerChart]":
    """Return the figures of a result by name, in the look of the report; none where nothing is drawn."""
    from lmreach.report.kit.drawing import themed

    return {figure.name: themed(figure.wide) for figure in _figures(result)}


@singledispatch
def _figures(result: Any) -> "Iterable[Figure]":
    return ()


@_figures.register(RunResults)
def _(result: RunResults) -> "Iterable[Figure]":
    from lmreach.report.figures import figures

    assert isinstance(result, AnyResults)
    return figures(result)


@_figures.register(Comparison)
def _(result: Comparison) -> "Iterable[Figure]":
    from lmreach.report.compare.figures import figures

    return figures(result)


@_figures.register(CellsResults)
def _(result: CellsResults) -> "Iterable[Figure]":
    from lmreach.report.cells.section import parts

    return parts(result).figures


@_figures.register(Judgement)
def _(result: Judgement) -> "Iterable[Figure]":
    from lmreach.report.bars import judgement_figure

    return (judgement_figure(result),)


@_figures.register(BoundsResults)
def _(result: BoundsResults) -> "Iterable[Figure]":
    from lmreach.report.bars import limits_figure

    return (limits_figure(result),)


@_figures.register(SupportResults)
def _(result: SupportResults) -> "Iterable[Figure]":
    from lmreach.report.bars import growth_figure

    return (growth_figure(result),)
