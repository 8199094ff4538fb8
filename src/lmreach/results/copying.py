"""What a copying run holds: strings copied at each length, mistakes, layouts, and the limit beside them."""

from collections.abc import Sequence
from typing import Literal

from lmreach.results.base import Columns, FittedCurve, Interval, Result, Share
from lmreach.results.limits import Limit
from lmreach.results.run import RunResults

__all__ = [
    "Alphabet",
    "Attention",
    "Checked",
    "CopyLength",
    "CopyResults",
    "Copying",
    "Counted",
    "Crammed",
    "Layout",
    "LearningPoint",
    "Mistakes",
    "Order",
    "Training",
]


Counted = Literal["exact", "complete"]


class LearningPoint(Result):
    """A test during training: share of held-out strings without a mistake."""

    step: int
    loss: float
    exact: float
    strings: int
    seconds: float


class Training(Result):
    """How a copier was trained.

    Attributes
    ----------
    kind, parent
        Architecture trained from scratch, or the model that was fine-tuned; the other is None.
    n
        Length of the n-gram in tasks that have one.
    shortest, longest
        Training strings, in letters.
    reached, mark
        Whether the lower 95 % limit of exact match came over the mark.
    """

    kind: str | None
    parent: str | None
    task: str
    n: int
    shortest: int
    longest: int
    steps: int
    seconds: float
    reached: bool
    mark: float
    curve: tuple[LearningPoint, ...]
    parameters: int


class Alphabet(Result):
    """What strings are made of.

    Attributes
    ----------
    symbols
        ``letters`` or ``tokens``.
    trained
        Symbols seen in training. None: nothing was trained.
    tested, unseen, unseen_letters
        Symbols asked for, and those among them that training did not show.
    """

    symbols: str
    trained: int | None
    tested: int
    unseen: int
    unseen_letters: tuple[str, ...]


class CopyLength(Result):
    """Strings of one length; see `lmreach.experiments.copying.measure.LengthScore`.

    Attributes
    ----------
    prompt
        Positions of the longest prompt.
    exact, complete
        Answers that are right with their end mark, and those whose characters are all right.
    characters
        Characters right at their place.
    first_wrong_quartiles
        Quartiles of how many characters were right before the first wrong one. None: no string went wrong.
    """

    length: int
    prompt: int
    exact: Share
    complete: Share
    characters: Share
    first_wrong_quartiles: tuple[float, float, float] | None
    seconds: float

    def counting(self, counted: Counted) -> Share:
        """Return the answers that count."""
        return self.exact if counted == "exact" else self.complete


class Order(Result):
    """First mistakes beside the last k characters; None where there is nothing to count.

    Attributes
    ----------
    followed, followed_by_chance
        Wrong symbols that followed another occurrence of those characters; what random ones would do.
    ambiguous, ambiguous_usually
        Mistakes where they occur elsewhere and go on differently; all places of the same strings.
    near, near_by_chance
        Wrong symbols at most k places from the right one; what random ones would do.
    """

    k: int
    followed: Share | None
    followed_by_chance: float | None
    ambiguous: Share | None
    ambiguous_usually: float | None
    near: Share | None
    near_by_chance: float | None


class Mistakes(Result):
    """First mistakes of all strings that went wrong.

    Attributes
    ----------
    kinds
        What came out instead, to how often.
    within_training_length
        Mistakes at places that training strings have. None: nothing was trained.
    """

    strings: int
    kinds: dict[str, int]
    place_quartiles: tuple[float, float, float]
    within_training_length: int | None
    orders: tuple[Order, ...]


class Layout(Result):
    """The same strings asked for in another prompt layout, compared with the usual one.

    Attributes
    ----------
    lengths, prompts, right
        Lengths compared, positions of their prompts, answers that count.
    only_usual, only_here, p_value
        Strings that come out in one of the two alone, and McNemar's exact test on them.
    """

    layout: str
    lengths: tuple[int, ...]
    prompts: tuple[int, ...]
    right: tuple[Share, ...]
    n50: Interval
    only_usual: int
    only_here: int
    p_value: float


class Attention(Result):
    """Attention to what is to be copied; see `lmreach.experiments.copying.attention.SourceAttention`."""

    length: int
    strings: int
    layer: int
    head: int
    weight: float
    at_mistakes: float | None
    mistakes: int
    uniform: float


class Checked(Result):
    """Strings decoded again at batch 1, and how many came out the same."""

    length: int
    strings: int
    same: int


class Crammed(Result):
    """Optimised vectors on the same model, for random strings of the same symbols.

    Attributes
    ----------
    strings, failed
        Those that count, and those whose loss stopped being a number, which do not.
    start_scale
        Length of the first vectors over that of real inputs. None: not recorded.
    """

    m: int
    strings: int
    failed: int = 0
    limit: int
    reaches: tuple[int, ...]
    censored: tuple[bool, ...]
    n50: Interval
    curve: Columns
    steps: int
    start_scale: float | None = None


class Copying(Result):
    """How far a model copies.

    Attributes
    ----------
    label
        ``in-context copying``, ``length generalisation`` or ``unseen symbols``.
    counted
        Which answers count: ``exact`` or ``complete``.
    trained_to, training
        Longest string in training, and how it was trained. None: nothing was trained.
    n50, fit
        Length at which half of the strings come out, and the curve behind it.
    mistakes
        None: none were made, or answers were teacher-forced.
    checked
        None: stopped before it, or teacher-forced.
    finished
        Whether all lengths were measured; only a study's share of time leaves some out.
    """

    label: str
    decoding: str
    counted: Counted
    layout: str
    trained_to: int | None
    training: Training | None
    alphabet: Alphabet
    lengths: tuple[CopyLength, ...]
    n50: Interval
    fit: FittedCurve
    mistakes: Mistakes | None
    layouts: tuple[Layout, ...]
    attention: tuple[Attention, ...]
    checked: Checked | None
    cramming: tuple[Crammed, ...]
    seconds: float
    finished: bool = True


class CopyResults(RunResults):
    """The results of a copying run."""

    kind: Literal["copy"] = "copy"
    copying: Copying
    limits: tuple[Limit, ...]

    def rows(self) -> Sequence[Result]:
        """Return what was copied at each length."""
        return self.copying.lengths
