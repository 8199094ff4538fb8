"""What the result of a call does in Python and in a notebook: words, a page section, charts, a table, JSON.

The one file of this layer that asks `lmreach.report`, and only when something is to be shown: a result is
plain values, and how it looks is the report's business.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from lmreach.errors import InputError, problem
from lmreach.results.base import Interval, Result

if TYPE_CHECKING:
    import altair as alt
    import pandas as pd

__all__ = ["Shown", "flat"]

Row = dict[str, Any]


class Shown(Result):
    """A result as a whole, such as a call returns it."""

    _table: ClassVar[str] = ""
    """Name of the field whose entries are the rows of `to_pandas`."""

    def __repr__(self) -> str:
        """Return what was found, in words, as the command line prints it."""
        from lmreach.report.shown import text

        return text(self)

    def __str__(self) -> str:
        return repr(self)

    def _repr_html_(self) -> str:
        from lmreach.report.shown import html

        return html(self)

    def plot(self) -> "alt.LayerChart | dict[str, alt.LayerChart]":
        """Return the figures of the report: one chart, or several by name.

        Raises
        ------
        InputError
            Nothing was measured that a figure shows.
        """
        from lmreach.report.shown import charts

        drawn = charts(self)
        if not drawn:
            raise InputError(problem("something to draw", "no figure for it", "print it, or use to_pandas()"))
        return next(iter(drawn.values())) if len(drawn) == 1 else drawn

    def to_pandas(self) -> "pd.DataFrame":
        """Return the main table, one row per entry; an estimate takes columns for value and both ends.

        Raises
        ------
        InputError
            pandas is not installed.
        """
        try:
            import pandas as pd
        except ImportError as error:
            raise InputError(
                problem("pandas for a table", "none installed", "pip install 'lmreach[pandas]'")
            ) from error
        return pd.DataFrame([flat(row) for row in self.rows()])

    def rows(self) -> Sequence[Result]:
        """Return the entries of the main table."""
        entries: Sequence[Result] = getattr(self, self._table)
        return entries

    def to_json(self) -> str:
        """Return everything as JSON, in the form of results.json."""
        return self.model_dump_json(indent=1) + "\n"


def flat(row: Result) -> Row:
    """Return what fits into cells: numbers, words, and the three numbers of an estimate; no curves."""
    flat: Row = {}
    for name in type(row).model_fields:
        value = getattr(row, name)
        if isinstance(value, Interval):
            flat |= {name: value.value, f"{name}_low": value.low, f"{name}_high": value.high}
            flat[f"{name}_verdict"] = value.verdict
        elif value is None or isinstance(value, str | int | float | bool):
            flat[name] = value
    return flat
