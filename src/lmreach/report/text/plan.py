"""A plan in words."""

from collections.abc import Iterator

from lmreach.report.kit.format import duration
from lmreach.results.plan import PlanResults

__all__ = ["plan_lines"]

_GIB = 2**30


def plan_lines(plan: PlanResults) -> Iterator[str]:
    """Return the lines that ``lmreach plan`` prints."""
    limit = "no budget" if plan.budget_s is None else f"a budget of {duration(plan.budget_s)}"
    threads = f"{plan.threads} {'thread' if plan.threads == 1 else 'threads'}"
    yield f"A study of {plan.model} with {limit}, {threads} on {plan.device}:"
    yield ""
    yield f"{duration(plan.before_s):>9}  loading, timing, choosing the first vectors"
    for one in plan.conditions:
        what = f"{one.strings} strings of {one.target} targets at m = {one.m}, {one.steps} steps"
        yield f"{duration(one.seconds):>9}  {what}"
    if plan.elsewhere_s is not None:
        yield f"{duration(plan.elsewhere_s):>9}  at most: hidden states, decoder cells, census, report"
    if plan.then_s is not None:
        yield f"{duration(plan.then_s):>9}  more strings, and twice the steps while n50 grows"
    yield ""
    yield f"A step of the first strings takes {plan.step_s:.2g} s now; a study follows if that changes."
    yield f"Memory: about {plan.peak_bytes / _GIB:.1f} GiB."
    if plan.waiting:
        yield f"Only if time is left: {', '.join(plan.waiting)}."
