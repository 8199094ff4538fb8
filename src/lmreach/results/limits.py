"""Limits from theory, as a run computed them."""

from collections.abc import Sequence

from lmreach.results.base import Result

__all__ = ["Limit", "tightest"]


class Limit(Result):
    """One upper limit on the outputs of m prompt vectors; see `lmreach.maths.bounds.Limit`.

    Attributes
    ----------
    log_packing_nats
        ln P, nats per prompt vector.
    tokens_per_vector
        C = ln P / ln V.
    tightest_of_premise
        Whether it is the tightest proved limit of its premise.
    """

    name: str
    support: str
    norm: str
    premise: str
    packing: str
    log_packing_nats: float
    tokens_per_vector: float
    bits_per_coordinate: float
    source: str
    note: str
    tightest_of_premise: bool

    @property
    def log_vocabulary(self) -> float | None:
        """Return ln V as it entered the limit; None where the limit is 0."""
        nats, tokens = self.log_packing_nats, self.tokens_per_vector
        return nats / tokens if nats and tokens else None

    @property
    def is_paper_ball(self) -> bool:
        """Whether it is the paper's ball, which depends on nothing but width, vocabulary and dtype."""
        return self.support == "ball" and "paper" in self.name


def tightest(limits: Sequence[Limit], premise: str) -> Limit | None:
    """Return the tightest proved limit of a premise (``hidden``, ``input``, ``format``), if there is one."""
    return next((one for one in limits if one.tightest_of_premise and one.premise == premise), None)
