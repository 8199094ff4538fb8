"""What a step costs on this machine under its present load: a pass and its positions, timed."""

from collections.abc import Callable
from dataclasses import dataclass

from lmreach.runs.study.conditions import Chunk, Condition

__all__ = ["StepModel"]

# Mean length of the frontier over a string's steps, in blocks; other texts reach further than random ids.
_BLOCKS, _BLOCKS_OF_TEXT = 1.3, 3.5
# Confirmed tokens a string beside its mean frontier, each decoded once and once scored for its bits.
_CONFIRMED = 1.5


@dataclass(frozen=True, slots=True)
class StepModel:
    """Seconds of cramming, before any of it was measured.

    Attributes
    ----------
    per_pass, per_position
        Seconds of a step: for any, and for each position of each row.
    per_token
        Seconds of one decoding step at batch 1.
    block
        Tokens of a frontier's block at an m.
    around
        Positions of start token and texts around the vectors.
    """

    per_pass: float
    per_position: float
    per_token: float
    block: Callable[[int], int]
    around: int = 0

    def step(self, condition: Condition, strings: int) -> float:
        """Return the seconds of one step of so many strings."""
        row = condition.m + self.around + self.frontier(condition)
        return self.per_pass + self.per_position * strings * row

    def seconds(self, chunk: Chunk) -> float:
        """Return the seconds of a chunk: its steps, and confirming what they reached."""
        return chunk.condition.steps * self.step(chunk.condition, chunk.strings) + self.confirming(chunk)

    def confirming(self, chunk: Chunk) -> float:
        """Return the seconds of decoding what a chunk's strings reached."""
        return _CONFIRMED * self.per_token * chunk.strings * self.frontier(chunk.condition)

    def frontier(self, condition: Condition) -> float:
        """Return the mean number of target ids in a row's loss."""
        blocks = _BLOCKS if condition.target == "random" else _BLOCKS_OF_TEXT
        return blocks * self.block(condition.m)
