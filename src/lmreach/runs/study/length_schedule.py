"""Which strings to try at which length, for protocols that answer one length at a time (docs/cramming.md)."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from lmreach.config.targets import labels
from lmreach.runs.study.conditions import Chunk, Condition
from lmreach.runs.study.placing import Placed, Placing, Trials
from lmreach.runs.study.schedule import AbstractSchedule

__all__ = ["LengthSchedule"]


@dataclass
class LengthSchedule(AbstractSchedule):
    """Chunks at single lengths.

    Attributes
    ----------
    placing
        Of every condition.
    limits
        Longest length per condition.
    most
        Trials that a condition is planned to have; the grid, which has no such number, has at least its
        next ones.
    """

    placing: dict[Condition, Placing] = field(default_factory=dict)
    limits: dict[Condition, int] = field(default_factory=dict)
    most: int = 0
    _next: dict[Condition, tuple[int, Placed | None]] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        targets: Iterable[str],
        ms: Iterable[int],
        place: Callable[[Condition], Placing],
        limit: Callable[[int], int],
        most: int,
        width: float | None = None,
    ) -> "LengthSchedule":
        """Return a schedule over all pairs, smallest m first; ``most``: trials planned per condition."""
        kinds = labels(targets)
        conditions = [Condition(kind, m) for m in sorted(set(ms)) for kind in kinds]
        return cls(
            conditions,
            width,
            placing={condition: place(condition) for condition in conditions},
            limits={condition: limit(condition.m) for condition in conditions},
            most=most,
        )

    def _evidence(self, condition: Condition) -> Trials:
        return Trials(limit=self.limits[condition])

    def _trials(self, condition: Condition) -> Trials:
        known = self._known.get(condition)
        return known if isinstance(known, Trials) else Trials()

    def _chunk(self, condition: Condition) -> Chunk:
        placed = self._place(condition)
        assert placed is not None
        return Chunk(condition, placed[1], placed[2], placed[0])

    def _place(self, condition: Condition) -> Placed | None:
        trials = self._trials(condition)
        chunks = len(trials.placed)
        if condition not in self._next or self._next[condition][0] != chunks:
            self._next[condition] = (chunks, self.placing[condition](trials))
        return self._next[condition][1]

    def _left(self, condition: Condition) -> int:
        """Return how many trials a condition has before it, at least those of its next chunk."""
        placed = self._place(condition)
        return 0 if placed is None else max(self.most - self.done(condition), placed[2] - placed[1])

    def _work(self, chunk: Chunk) -> float:
        """Count the positions of a step."""
        assert chunk.n is not None
        return float(chunk.strings * (chunk.condition.m + chunk.n))

    def _is_fresh(self, condition: Condition) -> bool:
        return condition not in self._known
