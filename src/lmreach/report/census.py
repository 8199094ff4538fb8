"""The census on the page: counts beside the most there could be, discovery curves, tables and sentences.

Everything is read from one plain dict, ``results.census``: ``grids`` (exact counts over a grid of prompts,
one entry per m) and ``tokens`` (prompts of real tokens, one entry per prompt length). Nothing is computed
again.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import altair as alt

from lmreach.report.drawing import INK, MUTED, PAPER, Figure, count_ticks, look, rows, spread, stack
from lmreach.report.format import NOT_KNOWN, duration, interval, is_number, number, plain
from lmreach.report.reading import Record
from lmreach.report.tables import Cell, Column, Row, Table

__all__ = ["Parts", "census_figures", "count_figure", "discovery_figure", "parts", "sentences", "tables"]

_LINE = 15  # height of one line of a label in pixels
_WORDS = ((1e12, "trillion"), (1e9, "billion"), (1e6, "million"))
_SHOWN_LENGTHS = 4


@dataclass(frozen=True, slots=True)
class Parts:
    """What the section of a census holds."""

    sentences: tuple[str, ...]
    figures: tuple[Figure, ...]
    tables: tuple[Table, ...]


@dataclass(frozen=True, slots=True)
class _Series:
    """One line: its points, its look (by index), whether it is a limit, and its label in two lines."""

    points: list[tuple[float, float]]
    index: int
    limit: bool
    label: tuple[str, str]


def parts(census: Record) -> Parts:
    """Return sentences, figures and tables of a census."""
    return Parts(tuple(sentences(census)), tuple(census_figures(census)), tuple(tables(census)))


def census_figures(census: Record) -> list[Figure]:
    """Return the figures there are data for: counts against length, then the discovery curve."""
    return [figure for figure in (count_figure(census), discovery_figure(census)) if figure is not None]


def sentences(census: Record) -> list[str]:
    """Say the result, one sentence per prompt length, for readers who know no theory."""
    return [*map(_grid_sentence, _grids(census)), *map(_token_sentence, _tokens(census))]


def count_figure(census: Record) -> Figure | None:
    """Draw the number of distinct outputs of each length, and the most there could be, on a log axis."""
    series: list[_Series] = []
    for index, (name, short, entry) in enumerate(_named(census)):
        counted = _lengths(entry)
        if not counted:
            continue
        most = [(one["length"], math.exp(min(one["log_bound_nats"], 690.0))) for one in counted]
        series.append(_Series(most, index, True, ("limit, " + short, f"{_rough(most[-1][1])} outputs")))
        found = [(one["length"], float(one["distinct"])) for one in counted]
        last = _rough(float(counted[-1]["distinct"]))
        # A sample finds no more outputs than it has prompts: the label says how many those were.
        partly = "complete" in entry and not entry["complete"]
        told = f"{last} ({_rough(entry['prompts'])} tried)" if partly else f"{last} counted"
        series.append(_Series(found, index, False, (name, told)))
    if not series:
        return None
    caption = (
        "Marks: different outputs that were counted, all prompts together. Dashed lines: the most there "
        "could be, the smaller of the number of prompts and of the number of texts of that length "
        "(Theorem 4.5 of the paper)."
    )
    title, told = "Different outputs by length", " ".join(sentences(census))
    axis = "length of the output (tokens)"
    return _figure("census-counts", title, told, caption, series, axis, log=True)


def discovery_figure(census: Record) -> Figure | None:
    """Draw how many different outputs random subsets of the prompts give, for some output lengths."""
    entries = _tokens(census)
    if not entries:
        return None
    entry = max(entries, key=lambda one: (bool(one.get("complete")), int(one["prompts"])))
    curves = _some([one for one in entry["discovery"] if len(one["prompts"]) > 1])
    if not curves:
        return None
    sizes = [float(size) for size in curves[-1]["prompts"]]
    series = [_Series([(t, t) for t in sizes], 0, True, ("every prompt", "something new"))]
    for index, curve in enumerate(curves):
        points = list(zip(map(float, curve["prompts"]), map(float, curve["distinct"]), strict=True))
        name = "1 token" if curve["length"] == 1 else f"{curve['length']} tokens"
        series.append(_Series(points, index, False, (name, f"{_rough(points[-1][1])} different")))
    kind = _prompts(entry["prompt_tokens"])
    told = f"Expected number of different outputs among randomly chosen {kind}."
    caption = (
        f"{told} Exact expectation over all choices of that many of the {number(int(entry['prompts']))} "
        "prompts tried. A curve that still climbs at its end has outputs left to find."
    )
    title = "Discovery of new outputs"
    return _figure("census-discovery", title, told, caption, series, "prompts tried", log=False)


def tables(census: Record) -> list[Table]:
    """Return the tables that have rows: grids, prompts of tokens by length, popular outputs."""
    found = [_grid_table(census), _missing_table(census), _token_table(census), _popular_table(census)]
    return [table for table in found if table.rows]


def _grids(census: Record) -> list[Record]:
    return list(census.get("grids") or ())


def _tokens(census: Record) -> list[Record]:
    return list(census.get("tokens") or ())


def _lengths(entry: Record) -> list[Record]:
    return list(entry.get("lengths") or entry.get("estimates") or ())


def _named(census: Record) -> list[tuple[str, str, Record]]:
    """Return every entry with its name, and a shorter one for its limit."""
    grids = [(f"m = {grid['m']}", f"m = {grid['m']}", grid) for grid in _grids(census)]
    kinds = [(entry["prompt_tokens"], entry) for entry in _tokens(census)]
    named = [(f"{m}-token prompts", "1 token" if m == 1 else f"{m} tokens", entry) for m, entry in kinds]
    return [*grids, *named]


def _prompts(tokens: int) -> str:
    return "prompts of 1 token" if tokens == 1 else f"prompts of {tokens} tokens"


def _grid_sentence(grid: Record) -> str:
    last = _lengths(grid)[-1]
    length, vectors = int(last["length"]), "1 vector" if grid["m"] == 1 else f"{grid['m']} vectors"
    known = "" if grid.get("exact", True) else "about "
    all_texts = _rough(math.exp(min(length * math.log(grid["vocab"]), 690.0)))
    orders = "" if grid.get("order", "all") == "all" else " (order before the last vector aside)"
    text = (
        f"All {number(int(grid['prompts']))} prompts{orders} of {vectors} with {grid['q']} values per "
        f"coordinate were tried: they give {known}{_rough(float(last['distinct']))} different outputs of "
        f"{length} tokens, of {all_texts} that there are."
    )
    full = grid.get("fully_reachable")
    if not is_number(full):
        return text
    if full == 0:
        return f"{text} Not even every single token can be produced."
    unit = "token" if full == 1 else "tokens"
    return f"{text} Every text of up to {full} {unit} can be produced; longer ones only in part."


def _token_sentence(entry: Record) -> str:
    last = _lengths(entry)[-1]
    prompts, length = int(entry["prompts"]), int(last["length"])
    kind = "one token" if entry["prompt_tokens"] == 1 else f"{entry['prompt_tokens']} tokens"
    tried = f"all {number(prompts)}" if entry.get("complete") else f"{number(prompts)} random"
    text = (
        f"After {tried} prompts of {kind} the model goes on in {number(int(last['distinct']))} different "
        f"ways ({length} tokens each)"
    )
    if last.get("top"):
        best = last["top"][0]
        share = best["prompts"] / prompts
        times = "1 prompt" if best["prompts"] == 1 else f"{number(int(best['prompts']))} prompts"
        text += f"; the most popular way follows {times} ({100 * share:.2g} %)"
    chao = last.get("chao1")
    if chao:
        text += (
            f". All prompts of that length together have more: at least about {_rough(chao['value'])} "
            f"different ways (95 % interval {_rough(chao['low'])} to {_rough(chao['high'])}, an estimate "
            "from below)"
        )
    return text + "."


def _grid_table(census: Record) -> Table:
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
    found = tuple(_grid_row(grid) for grid in _grids(census))
    source = (
        "Every prompt of the grid decoded greedily; of equal logits the lowest id is taken. Within "
        "rounding: some step had two logits so close that another batch size might decide otherwise; "
        "these were decoded again one by one."
    )
    return Table("census-grids", "Exact counts over all prompts of a grid", source, columns, found)


def _grid_row(grid: Record) -> Row:
    last = _lengths(grid)[-1]
    error = last.get("standard_error")
    again = "" if grid["close"] == grid["decoded_again"] else f"{grid['decoded_again']} decoded again"
    return Row(
        (
            Cell(str(grid["m"])),
            Cell(number(int(grid["prompts"]))),
            Cell(str(last["length"])),
            Cell(_count(last["distinct"]), small=f"± {number(error)}" if error else ""),
            Cell(_known(grid.get("fully_reachable"))),
            Cell(_known(grid.get("half_reachable"))),
            Cell(number(int(grid["tied"]))),
            Cell(number(int(grid["close"])), small=again),
            Cell(duration(float(grid["seconds"]))),
        )
    )


def _missing_table(census: Record) -> Table:
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
    found = tuple(_missing_row(grid) for grid in _grids(census) if (grid.get("missing") or {}).get("count"))
    source = (
        "AUC: chance that a sequence that can be produced has larger cells (sum of ln v over its tokens) "
        "than one that cannot; 0.5 means that cell shares say nothing. Intervals leave out one token at a "
        "time."
    )
    return Table("census-missing", "Which sequences no prompt produces", source, columns, found)


def _missing_row(grid: Record) -> Row:
    missing = grid["missing"]
    why = missing.get("reasons") or {}
    aucs = [why.get(name) for name in ("auc_cell_shares", "auc_cell_shares_of_occurring_tokens")]
    return Row(
        (
            Cell(str(grid["m"])),
            Cell(str(missing["length"])),
            Cell(f"{number(int(missing['count']))} of {number(int(missing['of']))}"),
            Cell(number(int(missing["missing_though_all_tokens_occur"]))),
            Cell(str(len(missing["never"]))),
            Cell(_known(len(why["unreachable_tokens"]) if why else None)),
            Cell(f"{missing['repeats_missing']} of {missing['repeats']}"),
            *(
                Cell(number(one["value"], 3), small=interval(one["low"], one["high"]))
                if one
                else Cell(NOT_KNOWN)
                for one in aucs
            ),
        )
    )


def _token_table(census: Record) -> Table:
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
    found = tuple(_token_row(entry, one) for entry in _tokens(census) for one in _lengths(entry))
    source = (
        "Entropy: of the output under a random prompt. Share known: chance that the next random prompt "
        "gives an output that was seen (Good and Turing). Chao1 and ACE estimate how many outputs all "
        "prompts of that length have, Chao1 from below; a complete census has nothing to estimate."
    )
    return Table("census-tokens", "Different outputs of each length", source, columns, found)


def _token_row(entry: Record, one: Record) -> Row:
    covered = one.get("coverage")
    name = f"{'all' if entry.get('complete') else 'random'} {number(int(entry['prompts']))}"
    estimates = [one.get("chao1"), one.get("ace")]
    return Row(
        (
            Cell(name, small=f"of {entry['prompt_tokens']} token{'s' if entry['prompt_tokens'] > 1 else ''}"),
            Cell(str(one["length"])),
            Cell(number(int(one["distinct"]))),
            Cell(number(int(one["seen_once"]))),
            Cell(number(float(one["entropy_bits"]))),
            Cell("100")
            if covered is None
            else Cell(
                number(100 * covered["value"]), small=interval(100 * covered["low"], 100 * covered["high"])
            ),
            *(_estimate(x) for x in estimates),
        )
    )


def _estimate(found: Record | None) -> Cell:
    if found is None:
        return Cell("counted")
    return Cell(_rough(found["value"]), small=f"{_rough(found['low'])} to {_rough(found['high'])}")


def _popular_table(census: Record) -> Table:
    columns = (
        Column("Prompts", numeric=False),
        Column("Output", numeric=False),
        Column("Prompts that lead there"),
        Column("Share", "%"),
    )
    found = []
    for entry in _tokens(census):
        for shown in _lengths(entry)[-1].get("top") or ():
            share = 100 * shown["prompts"] / entry["prompts"]
            text = str(shown.get("text", shown["ids"]))
            cells = (
                Cell(f"{entry['prompt_tokens']} token{'s' if entry['prompt_tokens'] > 1 else ''}"),
                Cell(text, exact=True),
                Cell(number(int(shown["prompts"]))),
                Cell(number(share)),
            )
            found.append(Row(cells))
    source = "The outputs of the longest length that most prompts lead to."
    return Table("census-popular", "Most popular outputs", source, columns, tuple(found))


def _count(value: float) -> str:
    return number(int(value)) if isinstance(value, int) else number(float(value))


def _known(value: object) -> str:
    return number(value) if value is not None else NOT_KNOWN


def _rough(value: float) -> str:
    """Write a count for a reader: in full up to a million, in words up to 10^15, then as a power of ten."""
    if value < 999_999.5:
        return number(round(value))
    if value >= 1e15:
        return f"10^{math.log10(value):.0f}"
    unit, word = next((unit, word) for unit, word in _WORDS if value >= unit * 0.9995)
    return f"{value / unit:.3g} {word}"


def _some(curves: Sequence[Record]) -> list[Record]:
    """Take at most four lengths: the first, the last, and doublings between."""
    if len(curves) <= _SHOWN_LENGTHS:
        return list(curves)
    last = curves[-1]["length"]
    wanted = [1, 2, 4, last] if last < 16 else [1, 4, last // 2, last]
    return [one for one in curves if one["length"] in wanted]


@dataclass(frozen=True, slots=True)
class _Frame:
    """Axes in data units and size in pixels."""

    x: tuple[float, float]
    y: tuple[float, float]
    log: bool
    width: int
    height: int

    def encode_x(self, title: str) -> alt.X:
        """Encode a length or a number of prompts."""
        scale = alt.Scale(type="linear", domain=list(self.x), nice=False, zero=False)
        axis = alt.Axis(title=title, grid=False, values=self._ticks(), format=",.7~g", labelOverlap=True)
        return alt.X("x:Q", scale=scale, axis=axis)

    def _ticks(self) -> list[int]:
        # Lengths are few whole numbers, each of which was counted.
        low, high = (round(end) for end in self.x)
        return list(range(low, high + 1)) if self.log and high - low < 20 else count_ticks(self.x[1])

    def encode_y(self) -> alt.Y:
        """Encode a number of outputs."""
        title = "different outputs"
        if not self.log:
            scale = alt.Scale(type="linear", domain=list(self.y), nice=False, zero=False)
            axis = alt.Axis(title=title, values=count_ticks(self.y[1]), format=",.7~g")
            return alt.Y("y:Q", scale=scale, axis=axis)
        ticks = _decades(*self.y)
        words = ",".join(f"'{round(math.log10(t))}':'{_rough(t)}'" for t in ticks)
        axis = alt.Axis(title=title, values=ticks, labelExpr=f"{{{words}}}[round(log(datum.value)/LN10)]")
        scale = alt.Scale(type="log", domain=list(self.y), nice=False, zero=False, clamp=True)
        return alt.Y("y:Q", scale=scale, axis=axis)

    def pixel(self, y: float) -> float:
        """Return the height above the axis in pixels."""
        low, high = self.y
        if not self.log:
            return self.height * (y - low) / (high - low)
        return self.height * math.log(max(y, low) / low) / math.log(high / low)


def _decades(low: float, high: float) -> list[float]:
    """Return powers of ten within the axis, at most eight of them."""
    first, last = math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9)
    step = max(1, -(-(last - first + 1) // 8))
    return [10.0**k for k in range(first, last + 1, step)]


def _figure(
    name: str,
    title: str,
    description: str,
    caption: str,
    series: Sequence[_Series],
    x_title: str,
    *,
    log: bool,
) -> Figure:
    wide = _chart(series, x_title, 560, 190, log=log)
    narrow = _chart(series, x_title, 200, 120, log=log)
    return Figure(name, title, plain(description), caption, wide, narrow)


def _chart(series: Sequence[_Series], x_title: str, width: int, limit: int, *, log: bool) -> alt.LayerChart:
    xs = [x for one in series for x, _ in one.points]
    ys = [y for one in series for _, y in one.points]
    x = (min(xs) - 0.3, max(xs) + 0.3) if log else (0.0, max(xs) * 1.005)
    y = (min([1.0, *ys]), max(ys) * 1.6) if log else (0.0, max(ys) * 1.04)
    height = max(380, 2 * (_LINE + 6) * len(series))
    frame = _Frame(x, y, log, width, height)
    x_axis, y_axis = frame.encode_x(x_title), frame.encode_y()
    layers = _lines(series, frame, x_axis, y_axis, marks=log)
    return stack([*layers, *_labels(series, frame, limit)], width, height)


def _lines(series: Sequence[_Series], frame: _Frame, x: alt.X, y: alt.Y, *, marks: bool) -> list[alt.Chart]:
    """Draw limits, lines and marks, each in one layer: a chart of many layers is slow to render."""
    data = [
        {
            "x": a,
            "y": max(b, frame.y[0]),
            "line": index,
            "limit": one.limit,
            "colour": look(one.index).text if one.limit else look(one.index).colour,
            "shape": look(one.index).shape,
        }
        for index, one in enumerate(series)
        for a, b in one.points
    ]
    limits, found = ([row for row in data if row["limit"] == kind] for kind in (True, False))
    place = {"x": x, "y": y, "detail": "line:N"}
    colour = alt.Color("colour:N", scale=None)
    dashed = alt.Chart(rows(limits)).mark_line(strokeWidth=1.2, strokeDash=[5, 3])
    layers = [
        dashed.encode(color=colour, **place),
        alt.Chart(rows(found)).mark_line(strokeWidth=2).encode(color=colour, **place),
    ]
    if marks:
        dots = alt.Chart(rows(found)).mark_point(
            size=46, filled=True, stroke=PAPER, strokeWidth=0.8, opacity=1
        )
        fill = alt.Fill("colour:N", scale=None)
        layers.append(dots.encode(fill=fill, shape=alt.Shape("shape:N", scale=None), **place))
    return layers


def _labels(series: Sequence[_Series], frame: _Frame, limit: int) -> list[alt.Chart]:
    """Write two lines beside the end of every line, moved apart where they would touch."""
    wanted = [frame.pixel(one.points[-1][1]) for one in series]
    places = spread(wanted, 2 * _LINE + 4, _LINE, frame.height - _LINE)
    right = frame.width + 1
    leads, first, second = list[dict[str, object]](), list[dict[str, object]](), list[dict[str, object]]()
    for one, at, up in zip(series, wanted, places, strict=True):
        colour = MUTED if one.limit else look(one.index).text
        top = frame.height - up
        leads.append({"x": right, "y": frame.height - at, "x2": right + 10, "y2": top, "colour": colour})
        for lines, shift, text in zip((first, second), (-_LINE / 2, _LINE / 2), one.label, strict=True):
            ink = colour if lines is first or one.limit else INK
            line = {"x": right + 14, "y": top + shift, "text": plain(text), "colour": ink}
            (lines if one.limit is False else second).append(line)
    # Labels stand beyond the plot, where data scales do not reach: they are placed in pixels.
    x, y = alt.X("x:Q", scale=None, axis=None), alt.Y("y:Q", scale=None, axis=None)
    colours = alt.Color("colour:N", scale=None)
    rule = alt.Chart(rows(leads)).mark_rule(opacity=0.7)
    layers = [rule.encode(x=x, y=y, x2="x2", y2="y2", color=colours)]
    weights: tuple[tuple[list[dict[str, object]], Literal["bold", "normal"]], ...]
    weights = ((first, "bold"), (second, "normal"))
    for lines, weight in weights:
        mark = alt.Chart(rows(lines)).mark_text(
            align="left", baseline="middle", limit=limit, fontWeight=weight
        )
        layers.append(mark.encode(x=x, y=y, text="text:N", color=colours))
    return layers
