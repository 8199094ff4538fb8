"""What a study holds: limits, hidden states, accessibility per condition, slopes, and what is known well."""

from typing import ClassVar, Generic, Literal, TypeVar

from pydantic import Field

from lmreach.results.base import Columns, FittedCurve, Floats, Interval, Ints, Result, Words
from lmreach.results.cells import Cells
from lmreach.results.census import Census
from lmreach.results.copying import Copying
from lmreach.results.limits import Limits
from lmreach.results.run import RunResults

__all__ = [
    "Accessibility",
    "BySteps",
    "Cliff",
    "EndedEarly",
    "Example",
    "Extent",
    "Extrapolated",
    "Fit",
    "Information",
    "Known",
    "Level",
    "Points",
    "Precision",
    "Ratio",
    "SearchRecord",
    "Slope",
    "StartProbe",
    "StudyResults",
    "Support",
    "Turnbull",
]


Key = TypeVar("Key")


class Support(Result):
    """Where the final hidden states of sampled prompts lie; norms in units of the state.

    Attributes
    ----------
    samples
        States measured.
    prompt_lengths
        Shortest and longest prompt, in positions.
    min_cos, min_cos_states, min_cos_bound
        Smallest cosine, among how many states it was taken, and what no pair of all states can lie below.
        None: a single state, or not recorded.
    inside_norm_ellipsoid, largest_ellipsoid_fraction
        None: the final norm has no known gain.
    """

    samples: int
    prompt_lengths: tuple[int, ...]
    kinds: tuple[str, ...]
    l1_max: float
    l2_max: float
    linf_max: float
    mean_cos: float
    min_cos: float | None
    min_cos_states: int | None = None
    min_cos_bound: float | None = None
    inside_norm_ellipsoid: bool | None
    largest_ellipsoid_fraction: float | None


class Extent(Result):
    """Where the vectors of a condition's reached strings lie beside real inputs.

    Attributes
    ----------
    median_rms_over_inputs
        Median RMS coordinate over that of real inputs.
    inside_input_box, strings
        Strings whose vectors lie in the box of real inputs, of how many.
    """

    median_rms_over_inputs: float
    inside_input_box: int
    strings: int


class Cliff(Result):
    """How sharply the share of strings falls with length; see `lmreach.stats.cliff.Cliff`.

    Attributes
    ----------
    n90, n10, width, low, high, relative, factor_per_token
        None: it lies beyond the lengths tried.
    """

    n90: float | None
    n10: float | None
    width: float | None
    low: float | None
    high: float | None
    relative: float | None
    predicted: float
    factor_per_token: float | None


class Information(Result):
    """What the vectors tell of the prefixes that came out: means over all strings, in bits."""

    ce_without_bits: float
    ce_with_bits: float
    bits_per_vector: float
    bits_per_coordinate: float
    bits_per_stored_bit: float
    tokens_gained: float


class Points(Result):
    """Strings reached at single lengths.

    Attributes
    ----------
    n, reached, tried
        Lengths in tokens; strings reached and tried there.
    share, low, high
        reached / tried with its Clopper-Pearson interval.
    """

    n: Ints
    reached: Ints
    tried: Ints
    share: Floats
    low: Floats
    high: Floats


class Fit(FittedCurve):
    """A curve fitted to success at single lengths.

    Attributes
    ----------
    fits
        Chance of a fit as poor as this. None: too few lengths to say.
    steepness
        How steep the fall is, in words. Empty: not known.
    curve
        The curve with its band, for a figure. None: no curve was fitted.
    """

    fits: float | None = None
    steepness: Words = ""
    curve: Columns | None = None


class Turnbull(Result):
    """Turnbull's estimate, which supposes no curve: shares of strings within innermost intervals of length.

    Attributes
    ----------
    low, high, mass
        Ends of the intervals, both inclusive, in tokens, and the share of strings in each; an upper end of
        None is open. Empty: the maximum was not found, as ``words`` says.
    n50
        Between which lengths n50 lies.
    """

    low: Ints = ()
    high: tuple[int | None, ...] = ()
    mass: Floats = ()
    n50: Interval
    words: Words


class BySteps(Result):
    """n50 read off one run at rising numbers of its steps: what each string had won by then.

    Attributes
    ----------
    steps
        Optimiser steps taken.
    n50, low, high
        In tokens; None: it has no value, or the interval no such end.
    """

    steps: Ints
    n50: tuple[float | None, ...]
    low: tuple[float | None, ...]
    high: tuple[float | None, ...]


class Level(Result):
    """n50 of whole runs of so many steps."""

    steps: int
    strings: int
    n50: Interval


class Accessibility(Result):
    """One condition (a target kind at m vectors): how many of its strings were reached, and what that means.

    Attributes
    ----------
    protocol_note
        What must be said beside any number of a protocol that is there for comparison. Empty: nothing.
    within
        What the vectors were held to; the limit ``within ...`` counts that very set. Empty: nothing.
    strings, finished
        Strings asked for and finished.
    limit
        Longest length tried, in tokens.
    outcomes
        Strings (or trials at single lengths) by how they ended.
    smallest_gap
        Smallest top-two gap of any reached string, in logits. None: none was reached.
    extent
        None: no string was reached.
    reaches, censored, still_growing, curve, cliff
        Longest confirmed prefix of each string, whether the length limit ended it, strings that still grew in
        the last tenth of their steps, share against length, and its fall. None or empty where strings were
        tried at single lengths (protocols *fixed* and *published*).
    trials, solved, decoded, points, fit, turnbull, without_curve
        Trials at single lengths, their successes, those that also decode, shares, and three readings of
        them; ``without_curve``: n50 from the points alone. None where reaches were measured.
    information
        None: nothing was recorded, or some string of reach above 0 lacks the record.
    max_steps, steps_taken
        Steps that a string was to take, and least and most that one took. None: older results do not say.
    cut
        Strings that count as they stood when time was up: lower bounds at fewer steps.
    by_steps, levels, levelling
        n50 against steps within this run, n50 of runs of fewer steps beside it, and whether twice the steps
        still moved it: ``converged``, ``still growing`` or ``not tested``.
    tokens_per_vector, bits_per_coordinate, bits_ids
        Of n50. None: n50 has no value.
    ratio_to_limits
        Limit's name to its tokens per vector over the measured ones. None: n50 has no value.
    """

    target: str
    m: int
    protocol: str
    protocol_note: str = ""
    bos: str
    prefix: str = ""
    suffix: str = ""
    within: str = ""
    strings: int
    finished: int
    limit: int
    outcomes: dict[str, int]
    smallest_gap: float | None
    extent: Extent | None = None
    steps: int
    seconds: float
    n50: Interval
    reaches: tuple[int, ...] = ()
    censored: tuple[bool, ...] = ()
    still_growing: int | None = None
    curve: Columns | None = None
    cliff: Cliff | None = None
    trials: int | None = None
    solved: int | None = None
    decoded: int | None = None
    points: Points | None = None
    fit: Fit | None = None
    turnbull: Turnbull | None = None
    without_curve: tuple[int | None, int | None] | None = None
    information: Information | None = None
    max_steps: int | None = None
    steps_taken: tuple[int, int] | None = None
    cut: int = 0
    by_steps: BySteps | None = None
    levels: tuple[Level, ...] = ()
    levelling: str | None = None
    tokens_per_vector: float | None
    bits_per_coordinate: float | None
    bits_ids: float | None
    bits_vectors: int
    ratio_to_limits: dict[str, float | None]


class Ratio(Result):
    """A limit over a measured slope; ``ratio`` has no upper end where the slope may be 0."""

    limit: str
    ratio: Interval


class Extrapolated(Result):
    """n50 of the line at some m, beyond what was measured if growth stays linear."""

    m: int
    n50: Interval


class Slope(Result):
    """A line with intercept through n50 against m, of one target kind; see `lmreach.stats.slope.Slope`.

    Attributes
    ----------
    m
        Numbers of vectors measured; their n50 stand in the accessibility entries.
    slope
        Tokens per vector.
    intercept, r2, covariance, through_origin, exponent
        None: there is no line, or (covariance, r2) too little to say.
    better
        ``line`` or ``power law``, whichever leaves less. None: too close, or too few points.
    bounds
        Points that enter as bounds only.
    steps_taken
        Least and most steps behind its points. None: older results do not say.
    shape_words
        How far growth is a straight line through 0. Empty: not known.
    """

    target: str
    m: tuple[int, ...]
    slope: Interval
    intercept: float | None
    r2: float | None
    covariance: tuple[float, float, float] | None = None
    through_origin: Interval | None = None
    exponent: Interval | None = None
    better: str | None = None
    bounds: int = 0
    shape_words: Words = ""
    steps_taken: tuple[int, int] | None = None
    ratios: tuple[Ratio, ...]
    extrapolated: tuple[Extrapolated, ...] = ()


class StartProbe(Result):
    """How the length of the first vectors was chosen: mean reach after a few steps, by length tried.

    Attributes
    ----------
    m
        Prompt vectors of the probe. None: not recorded.
    mean_reach, reaches
        Length (real inputs: 1) as text, to tokens: their mean, and those of each string.
    losses
        Length to the last loss of each string in nats a token. Empty: reaches chose, not losses.
    seconds
        Spent when it was found, which may have been by an earlier run. None: not recorded.
    why
        Why the choice is not founded, where it is not.
    """

    scale: float
    m: int | None = None
    strings: int
    steps: int
    mean_reach: dict[str, float]
    reaches: dict[str, tuple[int, ...]] = Field(default_factory=dict)
    losses: dict[str, tuple[float, ...]] = Field(default_factory=dict)
    seconds: float | None = None
    why: str = ""


class SearchRecord(Result):
    """What the optimiser worked on, and what that was chosen from.

    Attributes
    ----------
    probe_seconds
        Dtype and attention kernel to seconds of a step. Empty: there was nothing to choose.
    probe_of_start
        None: the length was given, or the protocol has its own.
    start_scale
        RMS length of the first vectors over that of real inputs. None: the protocol's own.
    seconds
        Spent choosing. None: nothing was chosen.
    """

    dtype: str
    attention: str | None
    probe_seconds: dict[str, float] = Field(default_factory=dict)
    probe_of_start: StartProbe | None = None
    start_scale: float | None = None
    seconds: float | None = None

    @property
    def doubt(self) -> str:
        """Why the length of the first vectors is not founded on a probe; empty where it is, or was given."""
        return "" if self.probe_of_start is None else self.probe_of_start.why


class Known(Result):
    """How well one asked number is known.

    Attributes
    ----------
    what
        ``n50`` or ``slope``.
    m
        None: a slope.
    relative_width
        Interval over value. None: an end is open.
    known
        Whether that is the wanted width or less. None: none was asked for.
    """

    what: str
    target: str
    m: int | None
    relative_width: float | None
    known: bool | None


class EndedEarly(Result):
    """Strings that were not run because their number was known well enough."""

    target: str
    m: int
    strings: int
    why: str


class Precision(Result):
    """Which of the asked numbers are known to the wanted relative width; ``wanted`` None: all strings ran."""

    wanted: float | None
    numbers: tuple[Known, ...]
    ended_early: tuple[EndedEarly, ...] = ()


class Example(Result):
    """A target, how far it was emitted, and the trial's key."""

    target: str
    m: int
    key: str
    reach: int
    text: str
    emitted: str


class Measured(dict[Key, Interval], Generic[Key]):
    """Estimates by what they are of; a key that was not measured says which were."""

    def __missing__(self, key: Key) -> Interval:
        known = ", ".join(map(repr, self)) or "nothing"
        raise KeyError(f"{key!r} was not measured; measured: {known}")


class StudyResults(RunResults):
    """The results of a study.

    Attributes
    ----------
    support, cells, census, copying, search
        None: left out, as ``not_done`` says, or not asked for.
    n_samples
        Strings that count, by target kind.
    """

    kind: Literal["study"] = "study"
    limits: Limits
    support: Support | None = None
    accessibility: tuple[Accessibility, ...]
    slopes: tuple[Slope, ...]
    cells: Cells | None = None
    census: Census | None = None
    copying: Copying | None = None
    search: SearchRecord | None = None
    precision: Precision | None = None
    examples: tuple[Example, ...] = ()
    n_samples: dict[str, int] = Field(default_factory=dict)

    _table: ClassVar[str] = "accessibility"

    @property
    def n50(self) -> Measured[tuple[str, int]]:
        """Length in tokens at which half of the strings are reached, by target kind and m."""
        return Measured({(entry.target, entry.m): entry.n50 for entry in self.accessibility})

    @property
    def slope(self) -> Measured[str]:
        """Tokens that a further vector adds, by target kind."""
        return Measured({entry.target: entry.slope for entry in self.slopes})
