"""Limits from theory, as a run computed them."""

from collections.abc import Sequence
from typing import Any

from pydantic import GetCoreSchemaHandler
from pydantic_core import CoreSchema, core_schema

from lmreach.results.base import Result

__all__ = ["Limit", "Limits", "tightest"]


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


class Limits(tuple[Limit, ...]):
    """Limits in the order of the report; JSON holds them as a list."""

    __slots__ = ()

    def tightest(self, premise: str) -> Limit | None:
        """Return the tightest proved limit of a premise: ``hidden``, ``input`` or ``format``."""
        return tightest(self, premise)

    def named(self, name: str) -> Limit:
        """Return the limit of a name.

        Raises
        ------
        KeyError
            There is none; the message names those that are there.
        """
        for limit in self:
            if limit.name == name:
                return limit
        raise KeyError(f"no limit {name!r}; there are {', '.join(limit.name for limit in self)}")

    @classmethod
    def __get_pydantic_core_schema__(cls, _source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_after_validator_function(cls, handler(tuple[Limit, ...]))
