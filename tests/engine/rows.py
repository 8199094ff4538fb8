"""Rows of the ledger that hold whatever a test gives them."""

from pydantic import ConfigDict

from lmreach.results.records import Record


class Row(Record):
    """A row of any fields."""

    model_config = ConfigDict(extra="allow")
