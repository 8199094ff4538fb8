"""The tables of a census: exact counts over grids, missing sequences, prompts of tokens, popular outputs."""

from lmreach.report.census.entries import rough
from lmreach.report.kit.format import NOT_KNOWN, duration, interval, number
from lmreach.report.kit.table import Cell, Column, Row, Table
from lmreach.results.census import Census, GridCount, Missing, Richness, TokenCount, TokenLength

__all__ = ["tables"]


def tables(census: Census) -> list[Table]:
    """Return the tables that have rows: grids, prompts of tokens by length, popular outputs."""
    found = [_grid_table(census), _missing_table(census), _token_table(census), _popular_table(census)]
    return [table for table in found if table.rows]


def _grid_table(census: Census) -> Table:
    columns = (
        Column("Prompt vectors", "m"),
        Column("Prompts"),
        Column("Output length", "tokens"),
        Column("Different outputs"),
        Column("Every text reachable up to", "tokens"),
        Column("Half of them up to", "tokens"),
        Column("Ties", "prompts"),
        Column("Within rounding", "prompts"),
        Column("Time", numeric=True),
    )
    found = tuple(_grid_row(grid) for grid in census.grids)
    source = (
        "Every prompt of the grid decoded greedily; of equal logits the lowest id is taken. Within "
        "rounding: some step had two logits so close that another batch size might decide otherwise; "
        "these were decoded again one by one."
    )
    return Table("census-grids", "Exact counts over all prompts of a grid", source, columns, found)


def _grid_row(grid: GridCount) -> Row:
    last = grid.lengths[-1]
    error = last.standard_error
    again = "" if grid.close == grid.decoded_again else f"{grid.decoded_again} decoded again"
    return Row(
        (
            Cell(str(grid.m)),
            Cell(number(int(grid.prompts))),
            Cell(str(last.length)),
            Cell(_count(last.distinct), small=f"± {number(error)}" if error else ""),
            Cell(_known(grid.fully_reachable)),
            Cell(_known(grid.half_reachable)),
            Cell(number(int(grid.tied))),
            Cell(number(int(grid.close)), small=again),
            Cell(duration(float(grid.seconds))),
        )
    )


def _missing_table(census: Census) -> Table:
    columns = (
        Column("Prompt vectors", "m"),
        Column("Length", "tokens"),
        Column("Missing", "sequences"),
        Column("Though all tokens occur", "sequences"),
        Column("Tokens that never occur"),
        Column("Of these, proved unreachable"),
        Column("One token repeated", "missing of V"),
        Column("Cell shares tell which", "AUC"),
        Column("Among occurring tokens", "AUC"),
    )
    found = tuple(
        _missing_row(grid.m, grid.missing) for grid in census.grids if grid.missing and grid.missing.count
    )
    source = (
        "AUC: chance that a sequence that can be produced has larger cells (sum of ln v over its tokens) "
        "than one that cannot; 0.5 means that cell shares say nothing. Intervals leave out one token at a "
        "time."
    )
    return Table("census-missing", "Which sequences no prompt produces", source, columns, found)


def _missing_row(m: int, missing: Missing) -> Row:
    why = missing.reasons
    aucs = (None, None) if why is None else (why.auc_cell_shares, why.auc_cell_shares_of_occurring_tokens)
    return Row(
        (
            Cell(str(m)),
            Cell(str(missing.length)),
            Cell(f"{number(int(missing.count))} of {number(int(missing.of))}"),
            Cell(number(int(missing.missing_though_all_tokens_occur))),
            Cell(str(len(missing.never))),
            Cell(_known(None if why is None else len(why.unreachable_tokens))),
            Cell(f"{missing.repeats_missing} of {missing.repeats}"),
            *(
                Cell(number(one.value, 3), small=interval(one.low, one.high)) if one else Cell(NOT_KNOWN)
                for one in aucs
            ),
        )
    )


def _token_table(census: Census) -> Table:
    columns = (
        Column("Prompts", numeric=False),
        Column("Output length", "tokens"),
        Column("Different outputs"),
        Column("Produced by one prompt only"),
        Column("Entropy", "bits"),
        Column("Share of outputs known", "%"),
        Column("At least (Chao1)", "outputs"),
        Column("Estimate (ACE)", "outputs"),
    )
    found = tuple(_token_row(entry, one) for entry in census.tokens for one in entry.lengths)
    source = (
        "Entropy: of the output under a random prompt. Share known: chance that the next random prompt "
        "gives an output that was seen (Good and Turing). Chao1 and ACE estimate how many outputs all "
        "prompts of that length have, Chao1 from below; a complete census has nothing to estimate."
    )
    return Table("census-tokens", "Different outputs of each length", source, columns, found)


def _token_row(entry: TokenCount, one: TokenLength) -> Row:
    covered = one.coverage
    name = f"{'all' if entry.complete else 'random'} {number(int(entry.prompts))}"
    estimates = [one.chao1, one.ace]
    return Row(
        (
            Cell(name, small=f"of {entry.prompt_tokens} token{'s' if entry.prompt_tokens > 1 else ''}"),
            Cell(str(one.length)),
            Cell(number(int(one.distinct))),
            Cell(number(int(one.seen_once))),
            Cell(number(float(one.entropy_bits))),
            Cell("100")
            if covered is None
            else Cell(_hundred(covered.value), small=f"{_hundred(covered.low)} to {_hundred(covered.high)}"),
            *(_estimate(x) for x in estimates),
        )
    )


def _estimate(found: Richness | None) -> Cell:
    if found is None:
        return Cell("counted")
    return Cell(rough(found.value), small=f"{rough(found.low)} to {rough(found.high)}")


def _popular_table(census: Census) -> Table:
    columns = (
        Column("Prompts", numeric=False),
        Column("Output", numeric=False),
        Column("Prompts that lead there"),
        Column("Share", "%"),
    )
    found = []
    for entry in census.tokens:
        for shown in entry.lengths[-1].top:
            share = 100 * shown.prompts / entry.prompts
            text = shown.text or str(list(shown.ids))
            cells = (
                Cell(f"{entry.prompt_tokens} token{'s' if entry.prompt_tokens > 1 else ''}"),
                Cell(text, exact=True),
                Cell(number(int(shown.prompts))),
                Cell(number(share)),
            )
            found.append(Row(cells))
    source = "The outputs of the longest length that most prompts lead to."
    return Table("census-popular", "Most popular outputs", source, columns, tuple(found))


def _count(value: float) -> str:
    return number(int(value)) if isinstance(value, int) else number(float(value))


def _hundred(share: float | None) -> str:
    return NOT_KNOWN if share is None else number(100 * share)


def _known(value: object) -> str:
    return number(value) if value is not None else NOT_KNOWN
