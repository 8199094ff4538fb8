"""Figures of single questions: limits side by side, and how the support of hidden states grew."""

import altair as alt

from lmreach.report.kit.drawing import COLOURS, MUTED, Figure, rows, stack
from lmreach.results.bounds import BoundsResults
from lmreach.results.certificates import Judgement
from lmreach.results.support import SupportResults

__all__ = ["growth_figure", "judgement_figure", "limits_figure"]

_WIDTH, _ROW, _HEIGHT = 420, 26, 240


def limits_figure(found: BoundsResults) -> Figure:
    """Return tokens per vector of every limit as bars, coloured by premise."""
    data = rows(
        [
            {"limit": limit.name, "premise": limit.premise, "tokens": limit.tokens_per_vector}
            for limit in found.limits
        ]
    )
    x = alt.X("tokens:Q", title="tokens per vector")
    y = alt.Y("limit:N", sort=None, title=None)
    colour = alt.Color("premise:N", scale=alt.Scale(range=list(COLOURS)), title="premise")
    bars = alt.Chart(data).mark_bar().encode(x=x, y=y, color=colour)
    values = (
        alt.Chart(data)
        .mark_text(align="left", dx=4, color=MUTED)
        .encode(x=x, y=y, text=alt.Text("tokens:Q", format=".3~g"))
    )
    title = "Limits from theory"
    listed = "; ".join(f"{limit.name} {limit.tokens_per_vector:.3g}" for limit in found.limits)
    return Figure(
        "limits",
        title,
        f"Tokens per vector of every limit: {listed}.",
        f"Upper limits in tokens per prompt vector. {found.subject}.",
        stack([bars, values], _WIDTH, _ROW * max(len(found.limits), 2)),
    )


def growth_figure(found: SupportResults) -> Figure:
    """Return the largest L2 norm against the number of states, and against prompt length."""
    data = rows(
        [{"by": step.by, "value": step.value, "l2": step.l2_max} for step in found.growth if step.value > 0]
    )
    x = alt.X("value:Q", scale=alt.Scale(type="log"), title="states, or tokens of the prompt")
    y = alt.Y("l2:Q", scale=alt.Scale(zero=False), title="largest L2 norm")
    colour = alt.Color("by:N", scale=alt.Scale(range=list(COLOURS)), title="by")
    line = alt.Chart(data).mark_line(point=True).encode(x=x, y=y, color=colour)
    return Figure(
        "support-growth",
        "How far hidden states lie out",
        f"The largest L2 norm of {found.samples} states is {found.l2_max:.4g}.",
        f"{found.model}: the largest L2 norm so far, with more states and with longer prompts.",
        stack([line], _WIDTH, _HEIGHT),
    )


def judgement_figure(found: Judgement) -> Figure:
    """Return the length each limit leaves fully possible as bars, and a line at what was emitted."""
    data = rows(
        [
            {"limit": limit.name, "premise": limit.premise, "tokens": limit.longest_fully_possible}
            for limit in found.limits
        ]
    )
    x = alt.X("tokens:Q", title="tokens")
    y = alt.Y("limit:N", sort=None, title=None)
    colour = alt.Color("premise:N", scale=alt.Scale(range=list(COLOURS)), title="premise")
    bars = alt.Chart(data).mark_bar(opacity=0.6).encode(x=x, y=y, color=colour)
    reached = alt.Chart(rows([{"tokens": found.reach}])).mark_rule(strokeWidth=2).encode(x=x)
    return Figure(
        "judgement",
        "What was emitted, beside what limits leave possible",
        f"{found.reach} of {found.n} tokens came out of {found.m} vectors.",
        f"Bars: longest length at which every sequence may be possible. Line: {found.reach} tokens emitted.",
        stack([bars, reached], _WIDTH, _ROW * max(len(found.limits), 2)),
    )
