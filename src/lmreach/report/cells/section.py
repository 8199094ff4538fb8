"""The decoder's cells on the page: how they share the measure, the refined limit, unreachable tokens, a map.

Everything is read from `lmreach.results.cells.Cells`, each part of which may be absent; nothing is computed
again.
"""

from dataclasses import dataclass

from markupsafe import Markup

from lmreach.report.cells.map import cell_map_svg, describe_map
from lmreach.report.cells.ranks import rank_figure
from lmreach.report.kit.drawing import Figure
from lmreach.report.kit.format import hundredths, interval, number, percent, plain
from lmreach.report.kit.table import Cell, Column, Row, Table
from lmreach.results.cells import CellLimit, CellMap, Cells, MeanLogShare, Rare, Shares, Unreachable

__all__ = ["Parts", "parts", "sentences", "tables"]

_SIGNS = {"estimated": "", "at_most": "at most ", "at_least": "at least ", "unknown": "not known, about "}
_SHOWN = 12


@dataclass(frozen=True, slots=True)
class Parts:
    """What the section of the cells holds; ``picture`` is the map as SVG, ``caption`` its words."""

    sentences: tuple[str, ...]
    figures: tuple[Figure, ...]
    tables: tuple[Table, ...]
    picture: Markup | None
    caption: str


def parts(cells: Cells) -> Parts:
    """Return what the section shows."""
    ranks = rank_figure(cells.shares) if cells.shares else None
    drawn = cells.map
    picture = None
    if drawn:
        picture = Markup("\n").join(_picture(drawn, narrow=narrow) for narrow in (False, True))
    return Parts(
        tuple(sentences(cells)),
        () if ranks is None else (ranks,),
        tuple(table for table in tables(cells) if table.rows),
        picture,
        _map_caption(drawn) if drawn else "",
    )


def _picture(drawn: CellMap, *, narrow: bool) -> Markup:
    variant = "narrow" if narrow else "wide"
    label = Markup('<svg role="img" aria-label="{}" class="{}" ').format(describe_map(drawn), variant)
    # The map escapes every text it draws (tested with hostile tokens).
    return Markup(cell_map_svg(drawn, narrow=narrow).replace("<svg ", str(label), 1))  # noqa: S704


def sentences(cells: Cells) -> list[str]:
    """Say the results, one sentence or two per part."""
    found = []
    if shares := cells.shares:
        found.append(f"Cell shares under the {shares.measure_words}: {shares.words}.")
    if rare := cells.rare:
        found += _rare_sentences(rare)
    if judged := cells.unreachable:
        found.append(_judged_sentence(judged))
    return found


def _rare_sentences(rare: Rare) -> list[str]:
    by_name = {mean.name: mean for mean in rare.means}
    uniform = by_name.get("uniform")
    found = []
    if uniform:
        found.append(
            f"The cell of a uniformly drawn token takes a log share of {_mean(uniform)} nats on average"
            f" ({uniform.draws} draws; cells that plain sampling never hits included)."
        )
    for ratio in rare.ratios:
        low, high = ratio.low, ratio.high
        found.append(
            f"If the cells of a sequence are independent, as the paper assumes, {_kind(ratio.text)} should"
            f" reach {_SIGNS[ratio.verdict]}{number(ratio.value)} times as far as random tokens"
            f" ({interval(low, high)})."
        )
    return found


def _judged_sentence(judged: Unreachable) -> str:
    counts, judged_count, vocab = judged.counts, judged.judged, judged.vocab
    whole = "all" if judged_count == vocab else f"{judged_count:,} drawn at random of"
    ties, lost, open_ones = (counts[name] for name in ("tie-only", "unreachable", "undetermined"))
    text = (
        f"Of {whole} {vocab:,} usable tokens {counts['reachable']:,} win at some hidden state of the support"
        f" ({judged.support}), each with a witness that the model's own head confirmed; {ties:,} can only"
        f" tie, {lost:,} can never win, {open_ones:,} are undetermined."
    )
    removed = judged.share_removed_with_ties
    if ties + lost and removed:
        shares = ", ".join(f"{hundredths(share)} at n = {n}" for n, share in removed.items())
        text += " A sequence with a token that never wins alone is inaccessible"
        text += f"; of uniform ones that is {shares}."
    return text


def tables(cells: Cells) -> list[Table]:
    """Return the tables: largest cells, refined limits, tokens that never win alone."""
    found = []
    if shares := cells.shares:
        found.append(_largest(shares))
    if rare := cells.rare:
        found.append(_refined(rare))
    if judged := cells.unreachable:
        found.append(_losers(judged))
    return found


def _largest(shares: Shares) -> Table:
    level = f"{100 * shares.confidence:g} %"
    rows = tuple(
        Row(
            (
                Cell(str(one.text), exact=True),
                Cell(str(one.id)),
                Cell(f"{one.share:.3g}"),
                Cell(f"{one.low:.3g} to {one.high:.3g}"),
                Cell(number(one.share * shares.cells)),
            )
        )
        for one in shares.largest
    )
    columns = (
        Column("Token", numeric=False),
        Column("id"),
        Column("Share of the measure"),
        Column("Interval", level),
        Column("Share times V", "1: as if all were alike"),
    )
    how = (
        "picked by one half of the states, measured with the other"
        if shares.held_out
        else "picked and measured by the same states, so a little too large"
    )
    source = f"{shares.samples:,} states, {shares.measure_words}; {shares.convention} cells, {how}."
    return Table("cells-largest", "The largest cells", source, columns, rows)


def _refined(rare: Rare) -> Table:
    names = list(rare.means[0].limits) if rare.means else []
    rows = tuple(
        Row(
            (
                Cell(_kind(mean.name), small=f"{mean.draws} draws, {mean.distinct} tokens"),
                Cell(_mean(mean)),
                Cell(interval(mean.low, mean.high)),
                *(_limit_cell(mean.limits[name]) for name in names),
            )
        )
        for mean in rare.means
    )
    columns = (
        Column("Tokens drawn from", numeric=False),
        Column("Mean log share", "nats per token"),
        Column("Interval", percent(rare.means[0].confidence) if rare.means else ""),
        *(Column(f"Refined limit, {name}", "tokens per vector") for name in names),
    )
    source = (
        f"Multilevel splitting, {rare.replicates} replicates of {rare.particles} particles;"
        f" {rare.measure}. C = ln P / -(mean log share), premise hidden; a convention, no bound: it takes"
        " the cells of a sequence as independent."
    )
    return Table("cells-refined", "What the cells make of the limit", source, columns, rows)


def _losers(judged: Unreachable) -> Table:
    named = [("unreachable", i) for i in judged.unreachable] + [("tie-only", i) for i in judged.tie_only]
    rows = tuple(
        Row((Cell(str(judged.texts.get(str(i), "")), exact=True), Cell(str(i)), Cell(verdict)))
        for verdict, i in named[:_SHOWN]
    )
    columns = (Column("Token", numeric=False), Column("id"), Column("Verdict", numeric=False))
    more = f" {len(named) - _SHOWN:,} more are in results.json." if len(named) > _SHOWN else ""
    ties = "Tie-only: another token has the same row, or is level wherever this one is best."
    source = f"Support: {judged.support}. {ties}{more}"
    return Table("cells-losers", "Tokens that never win alone", source, columns, rows)


def _limit_cell(limit: CellLimit) -> Cell:
    return Cell(f"{_SIGNS[limit.verdict]}{number(limit.value)}", small=interval(limit.low, limit.high))


def _mean(mean: MeanLogShare) -> str:
    return f"{_SIGNS[mean.verdict]}{mean.value:.2f} ± {mean.se:.2f}"


def _kind(name: str) -> str:
    return {"uniform": "uniform tokens", "self": "text of the model's own"}.get(name, plain(name))


def _map_caption(drawn: CellMap) -> str:
    return (
        f"The plane through the hidden states after {len(drawn.texts)} texts, cut where the next token "
        "changes; the polygons are exact. Colours follow the tokens at the texts and the largest cells, the "
        "rest is grey; the inset shows by how much the winner leads."
    )
