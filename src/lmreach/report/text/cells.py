"""What is known of a decoder's cells, as lines of at most 90 characters."""

from collections.abc import Iterator

from lmreach.report.kit.format import hundredths, plain
from lmreach.results.answers import CellsResults
from lmreach.results.cells import CellMap, Rare, Shares, Unreachable

__all__ = ["cells_lines"]

_NAMED = 12
_SIGNS = {"estimated": "", "at_most": "<= ", "at_least": ">= ", "unknown": "not known, about "}


def cells_lines(found: CellsResults) -> Iterator[str]:
    """Give every part that was asked for."""
    yield f"{found.model}: {found.vocab:,} usable tokens, hidden width {found.width:,}"
    if found.shares is not None:
        yield from _shares(found.shares, found.vocab)
    if found.rare is not None:
        yield from _rare(found.rare)
    if found.unreachable is not None:
        yield from _unreachable(found.unreachable)
    if found.map is not None:
        yield from _map(found.map)
    for file in found.files:
        yield f"written: {file}"


def _shares(part: Shares, vocab: int) -> Iterator[str]:
    level = f"{100 * part.confidence:g} %"
    rest = vocab - part.hit
    yield ""
    yield f"Shares of {part.measure_words}; {part.convention} cells"
    yield f"  states drawn          {part.samples:,} (seed {part.seed})"
    yield f"  cells hit             {part.hit:,} of {vocab:,} ({100 * part.coverage:.3g} %)"
    yield f"  80 % of the states    in {part.holders_80:,} cells ({100 * part.share_holding_80:.3g} %)"
    yield f"  Gini coefficient      {part.gini:.4f} (0: all cells alike)"
    if rest:
        yield f"  cells without a hit   {rest:,}, each below {part.unhit_limit:.2e} ({level});"
        yield f"                        together {_mass(part)} (Good-Turing estimate)"
    if not part.independent:
        yield "  states of one prompt depend on each other: true intervals are wider than those below"
    yield ""
    yield f"  {'largest cells':<26}{'share':>10}{f'{level} interval':>26}{'share x V':>12}"
    for cell in part.largest:
        interval = f"{cell.low:.3e} to {cell.high:.3e}"
        yield f"  {_shown(cell.text):<26}{cell.share:>10.3e}{interval:>26}{cell.share * vocab:>12.1f}"


def _mass(part: Shares) -> str:
    if part.unseen_mass > 0:
        return f"about {hundredths(part.unseen_mass)}"
    return f"under {100 / part.samples:.1g} %"


def _rare(part: Rare) -> Iterator[str]:
    yield ""
    yield "Mean log share of the cells of drawn tokens"
    yield f"  {part.measure}"
    drawn = f"{part.draws_per_source} draws from each distribution"
    yield f"  {drawn}, {len(part.tokens)} different tokens in all"
    yield ""
    yield f"  {'tokens drawn from':<24}{'nats per token':>15}{'s.e.':>8}{'95 % interval':>22}"
    for mean in part.means:
        value = f"{_SIGNS[mean.verdict]}{mean.value:.3f}"
        interval = f"{mean.low:.2f} to {mean.high:.2f}"
        yield f"  {_cut(mean.name, 23):<24}{value:>15}{mean.se:>8.3f}{interval:>22}"
    yield ""
    yield f"  tokens per vector these leave ({part.limit_dtype}):"
    for mean in part.means:
        for name, limit in mean.limits.items():
            high = "no upper end" if limit.high is None else f"{limit.high:.1f}"
            value = f"{_SIGNS[limit.verdict]}{limit.value:.1f}"
            yield f"  {_cut(mean.name, 23):<24}{name:<22}{value:>9} ({limit.low:.1f} to {high})"
    for ratio in part.ratios:
        value = f"{_SIGNS[ratio.verdict]}{ratio.value:.3f} ({ratio.low:.3f} to {ratio.high:.3f})"
        yield f"  predicted slope of {ratio.text} over uniform tokens: {value}"


def _unreachable(part: Unreachable) -> Iterator[str]:
    yield ""
    yield f"Tokens that some hidden state can emit ({part.support})"
    for verdict, count in part.counts.items():
        yield f"  {verdict:<14}{count:>10,}"
    for verdict, lost in (("unreachable", part.unreachable), ("tie-only", part.tie_only)):
        if lost:
            named = ", ".join(f"{i} {_shown(part.texts[str(i)])}" for i in lost[:_NAMED])
            more = f" and {len(lost) - _NAMED:,} more" if len(lost) > _NAMED else ""
            yield f"  {verdict}: {named}{more}"
    if part.unreachable or part.tie_only:
        removed = part.share_removed_with_ties.items()
        shares = "; ".join(f"n = {n}: {100 * share:.3g} %" for n, share in removed)
        yield f"  uniform sequences of n tokens that hold one of them, hence inaccessible: {shares}"


def _map(part: CellMap) -> Iterator[str]:
    yield ""
    yield f"Map: {len(part.cells)} tokens win on the plane through the three texts"
    for i, text in enumerate(part.texts, 1):
        yield f"  {i}  {_shown(text.text, 50)} -> {_shown(text.token)}, lead {text.margin:.3g}"


def _cut(text: str, characters: int) -> str:
    return text if len(text) <= characters else text[: characters - 1] + "…"


def _shown(text: str, characters: int = 22) -> str:
    return f"'{_cut(plain(text), characters)}'"
