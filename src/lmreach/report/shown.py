"""How a result shows itself: in words, as a section of a page, as charts."""

from functools import singledispatch
from typing import TYPE_CHECKING

from markupsafe import escape

from lmreach.report.text.bounds import bounds_lines
from lmreach.report.text.cells import cells_lines
from lmreach.report.text.reachability import reachability_lines
from lmreach.report.text.support import support_lines
from lmreach.results.answers import CellsResults, ReachabilityResults
from lmreach.results.bounds import BoundsResults
from lmreach.results.shown import Shown
from lmreach.results.support import SupportResults

if TYPE_CHECKING:
    import altair as alt

__all__ = ["charts", "html", "text"]


@singledispatch
def text(result: Shown) -> str:
    """Return what was found, in words: the lines that the command line prints."""
    raise NotImplementedError(type(result).__name__)


@text.register
def _(result: BoundsResults) -> str:
    return "\n".join(bounds_lines(result))


@text.register
def _(result: CellsResults) -> str:
    return "\n".join(cells_lines(result))


@text.register
def _(result: ReachabilityResults) -> str:
    return "\n".join(reachability_lines(result))


@text.register
def _(result: SupportResults) -> str:
    return "\n".join(support_lines(result))


@singledispatch
def html(result: Shown) -> str:
    """Return the section of a page that shows a result; one without a section of its own shows its lines."""
    return f"<pre>{escape(text(result))}</pre>"


@singledispatch
def charts(result: Shown) -> "dict[str, alt.LayerChart]":
    """Return the figures of a result by name; none where it has nothing to draw."""
    return {}
