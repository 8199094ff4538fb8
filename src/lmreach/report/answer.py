"""The answer to whether one text can be produced, as a table."""

from lmreach.report.kit.format import number
from lmreach.report.kit.table import Cell, Column, Row, Table, text_of
from lmreach.results.answers import ReachabilityResults

__all__ = ["answer_table"]


def answer_table(results: ReachabilityResults) -> Table:
    """Return what was asked, the prompt that emits it, and how far each search came."""
    held = [("Ids of the text", text_of(results.ids)), ("Tokens", str(results.tokens))]
    if results.m is not None:
        held += [("Prompt vectors", str(results.m)), ("Start token", results.bos)]
    if results.smallest_gap is not None:
        held.append(("Smallest gap", number(results.smallest_gap)))
    if results.certificate is not None:
        held.append(("Certificate", results.certificate))
    held += [
        (f"Longest start found at m = {attempt.m}", f"{attempt.longest_start} of {results.tokens} tokens")
        for attempt in results.tried
    ]
    return Table(
        "answer",
        "What was asked, and what came out",
        "What comes out was decoded greedily, step by step, at batch 1; a search that finds nothing proves "
        "nothing.",
        (Column("What", numeric=False), Column("Value", numeric=False)),
        tuple(Row((Cell(what), Cell(value))) for what, value in held),
    )
