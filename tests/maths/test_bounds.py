"""Limits: published values, what each says about itself, laws, and counts of a toy decoder."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lmreach.errors import InputError
from lmreach.maths.bounds import Limit, least_widths, limit_from, limits, tightest, unbounded_context
from lmreach.maths.precision import FORMAT_NAMES
from lmreach.maths.supports import Ball, Box, FloatGrid


def ball(d: int, vocab: int, dtype: str = "float16") -> Limit:
    return limits(width=d, vocab=vocab, dtype=dtype)[0]


def by_name(found: tuple[Limit, ...]) -> dict[str, Limit]:
    return {item.name: item for item in found}


# Published values ----------------------------------------------------------------------------------


def test_pythia_160m_in_half_precision() -> None:
    limit = ball(768, 50304)
    assert limit.log_packing == pytest.approx(6388.23189316, rel=1e-11)
    assert limit.tokens_per_vector == pytest.approx(590.091112233, rel=1e-11)
    assert limit.bits_per_coordinate == pytest.approx(math.log2(4097), rel=1e-12)
    assert limit.log_count(5) == pytest.approx(31941.1594658, rel=1e-11)
    assert limit.length_at_share(0.5, 3) == pytest.approx(1770.3373638, rel=1e-11)
    assert limit.log_share(590, 1) == 0.0
    assert limit.log_share(591, 1) == pytest.approx(-9.83947343523, rel=1e-10)
    assert limit.log_share(600, 1) == pytest.approx(-107.272032317, rel=1e-11)
    assert limit.longest_fully_possible(1) == 590


@pytest.mark.parametrize(
    ("d", "r", "eps", "vocab", "log10"),
    [(2, 1.0, 0.5, 8, 2.24043133906), (768, 1.0, 2**-11, 50304, 3005.5465262)],
)
def test_unbounded_context_values(d: int, r: float, eps: float, vocab: int, log10: float) -> None:
    assert unbounded_context(Ball(d, r), eps=eps, vocab=vocab) == pytest.approx(log10, rel=1e-10)


def test_a_wide_model_does_not_overflow() -> None:
    # 1184.71 decimal digits: the count itself is no float64.
    limit = limit_from(Ball(896, 1.0), name="ball", eps=0.1, vocab=151936, note="")
    assert limit.log_count(1) == pytest.approx(2727.892, abs=5e-4)
    assert limit.log_count(64) == pytest.approx(174585.095, abs=5e-4)
    assert limit.log_count(1) / math.log(10) == pytest.approx(1184.71, abs=5e-3)
    assert limit.tokens_per_vector == pytest.approx(228.635, abs=5e-4)


@pytest.mark.parametrize(("vocab", "slope"), [(151936, 228.635), (151665, 228.669)])
def test_padded_rows_change_the_slope(vocab: int, slope: float) -> None:
    limit = limit_from(Ball(896, 1.0), name="ball", eps=0.1, vocab=vocab, note="")
    assert limit.tokens_per_vector == pytest.approx(slope, abs=5e-4)


# What a limit says ---------------------------------------------------------------------------------


def everything(d: int = 8) -> tuple[Limit, ...]:
    rng = np.random.default_rng(0)
    states = rng.normal(size=(100, d))
    return limits(
        width=d,
        vocab=1000,
        input_box=(np.full(d, -0.5), np.full(d, 0.5)),
        hidden_box=(states.min(axis=0), states.max(axis=0)),
        norm_kind="rms",
        norm_gain=np.ones(d),
        norm_bias=np.zeros(d),
    )


def test_every_limit_its_inputs_allow() -> None:
    only_numbers = limits(width=8, vocab=1000)
    assert [item.name for item in only_numbers] == ["ball (paper)", "every finite value"]
    assert [item.name for item in everything()] == [
        "ball (paper)",
        "box of hidden states",
        "norm ellipsoid",
        "norm ellipsoid (tighter)",
        "box and norm ellipsoid",
        "ball of inputs",
        "box of inputs",
        "float grid of inputs",
        "every finite value",
    ]


def test_more_measuring_never_loosens_what_the_weights_allow() -> None:
    """The tightest hidden limit of builtin:verse was 255 without samples, 305 and 307 with more and fewer."""
    rng = np.random.default_rng(0)
    gain = rng.uniform(0.2, 3.0, size=8)
    norm = {"norm_kind": "rms", "norm_gain": gain, "norm_bias": np.zeros(8)}
    states = gain * np.sqrt(8) * rng.normal(size=(4000, 8))
    states *= (gain * np.sqrt(8) / np.abs(states)).min(axis=1, keepdims=True).clip(max=1)
    found = [tightest(limits(width=8, vocab=1000, **norm))["hidden"].log_packing]
    for count in (4000, 400, 40):
        seen = states[:count]
        box = (seen.min(axis=0), seen.max(axis=0))
        measured = limits(width=8, vocab=1000, hidden_box=box, **norm)
        found.append(tightest(measured)["hidden"].log_packing)
        names = by_name(measured)
        assert names["norm ellipsoid"] == by_name(limits(width=8, vocab=1000, **norm))["norm ellipsoid"]
    assert found == sorted(found, reverse=True)


def test_every_limit_names_premise_packing_and_source() -> None:
    found = by_name(everything())
    premises = {name: item.premise for name, item in found.items()}
    assert premises == {
        "ball (paper)": "hidden",
        "box of hidden states": "hidden",
        "norm ellipsoid": "hidden",
        "norm ellipsoid (tighter)": "hidden",
        "box and norm ellipsoid": "hidden",
        "ball of inputs": "input",
        "box of inputs": "input",
        "float grid of inputs": "input",
        "every finite value": "format",
    }
    for item in found.values():
        assert item.packing == ("exact count" if "float" in item.support else "proved")
        assert item.source
        assert item.norm == ("none" if item.packing == "exact count" else "linf")
    assert "no information about the model beyond d and V" in found["ball (paper)"].note
    assert "eps" in found["norm ellipsoid"].note


def test_entry_of_results_has_exactly_its_keys() -> None:
    for item in everything():
        entry = item.as_dict()
        assert list(entry) == [
            "name",
            "support",
            "norm",
            "premise",
            "packing",
            "log_packing_nats",
            "tokens_per_vector",
            "bits_per_coordinate",
            "source",
            "note",
        ]
        assert all(isinstance(value, (str, float)) for value in entry.values())


def test_tightest_of_each_premise() -> None:
    found = everything()
    best = tightest(found)
    assert set(best) == {"hidden", "input", "format"}
    for item in found:
        assert best[item.premise].log_packing <= item.log_packing
    convention = limit_from(Ball(1, 1.0), name="x", eps=1.0, vocab=2, note="")
    object.__setattr__(convention, "packing", "convention")
    assert tightest([convention]) == {}


def test_hidden_limits_share_one_precision() -> None:
    found = by_name(everything())
    assert found["box and norm ellipsoid"].log_packing <= found["box of hidden states"].log_packing
    assert found["box and norm ellipsoid"].log_packing <= found["norm ellipsoid"].log_packing
    assert found["norm ellipsoid (tighter)"].log_packing <= found["norm ellipsoid"].log_packing
    assert found["box and norm ellipsoid"].log_packing <= found["norm ellipsoid (tighter)"].log_packing + 1e-9
    alone = by_name(limits(width=8, vocab=1000, norm_kind="rms", norm_gain=np.ones(8)))
    assert alone["norm ellipsoid"] == found["norm ellipsoid"]
    assert "whatever was measured" in alone["norm ellipsoid"].note


def test_the_norm_ellipsoid_beats_the_paper_at_the_same_radius() -> None:
    found = by_name(limits(width=768, vocab=50304, norm_kind="rms", norm_gain=np.ones(768)))
    assert found["norm ellipsoid"].log_packing == pytest.approx(4395.5210937, rel=1e-11)
    assert found["ball (paper)"].log_packing == pytest.approx(6388.23189316, rel=1e-11)


def test_the_radius_cancels_in_the_papers_ball() -> None:
    values = [limits(width=64, vocab=100, radius=r)[0].log_packing for r in (1e-3, 1.0, 226.75)]
    assert values == pytest.approx([values[0]] * 3, rel=1e-13)


def test_hidden_states_may_have_another_width() -> None:
    found = by_name(limits(width=4, hidden_width=6, vocab=10, norm_kind="rms", norm_gain=np.ones(6)))
    assert found["norm ellipsoid"].width == 6
    assert found["every finite value"].width == 4


def test_norms_of_other_kinds_give_no_limit() -> None:
    for kind in ("none", "other", None):
        names = by_name(limits(width=4, vocab=10, norm_kind=kind, norm_gain=np.array([])))
        assert list(names) == ["ball (paper)", "every finite value"]


# Laws ----------------------------------------------------------------------------------------------

widths = st.integers(1, 65536)
vocabularies = st.integers(2, 300_000)
dtypes = st.sampled_from(FORMAT_NAMES)


@settings(deadline=None)
@given(
    d=widths,
    vocab=vocabularies,
    dtype=dtypes,
    m=st.integers(1, 10**6),
    n=st.integers(1, 10**9),
    q=st.floats(1e-300, 1),
)
def test_nothing_leaves_the_finite_numbers(d: int, vocab: int, dtype: str, m: int, n: int, q: float) -> None:
    for item in limits(width=d, vocab=vocab, dtype=dtype, vector_dtype=dtype):
        numbers = [
            item.log_count(m),
            item.log_share(n, m),
            item.length_at_share(q, m),
            item.tokens_per_vector,
        ]
        assert all(math.isfinite(number) for number in numbers)
        assert item.log_share(n, m) <= 0


@settings(deadline=None)
@given(d=widths, vocab=vocabularies, dtype=dtypes, m=st.integers(1, 1000), n=st.integers(1, 10**6))
def test_shares_and_lengths_agree(d: int, vocab: int, dtype: str, m: int, n: int) -> None:
    limit = ball(d, vocab, dtype)
    longest = limit.longest_fully_possible(m)
    assert limit.log_share(max(longest, 1), m) == 0.0 or longest == 0
    assert limit.log_share(longest + 1, m) < 0.0
    assert limit.log_share(n + 1, m) <= limit.log_share(n, m) <= limit.log_share(n, m + 1)
    assert limit.log_count(m + 1) >= limit.log_count(m)
    assert limit.log_count(m + 1, n) >= limit.log_count(m, n)
    assert limit.longest_fully_possible(m + 1) >= longest
    assert limit.log_count(m, n) <= min(limit.log_count(m), n * math.log(vocab))
    # Beyond the threshold every further token costs a factor V.
    step = limit.log_share(longest + 2, m) - limit.log_share(longest + 3, m)
    assert step == pytest.approx(math.log(vocab), rel=1e-6)


@settings(deadline=None)
@given(d=st.integers(1, 2000), vocab=vocabularies, dtype=dtypes, m=st.integers(1, 100), q=st.floats(1e-9, 1))
def test_the_length_at_a_share_has_that_share(d: int, vocab: int, dtype: str, m: int, q: float) -> None:
    limit = ball(d, vocab, dtype)
    length = limit.length_at_share(q, m)
    assert length >= limit.tokens_per_vector * m - 1e-9
    assert m * limit.log_packing - length * math.log(vocab) == pytest.approx(math.log(q), abs=1e-6)


def test_a_whole_slope_is_not_rounded_down() -> None:
    # 16^3 vectors and 16 tokens: exactly three tokens per vector, whatever the logs round to.
    limit = limit_from(FloatGrid(3, "int4"), name="grid", eps=None, vocab=16, note="")
    assert [limit.longest_fully_possible(m) for m in range(1, 200)] == [3 * m for m in range(1, 200)]
    assert limit.log_share(6, 2) == 0.0


@settings(deadline=None)
@given(vocab=vocabularies, d=st.integers(1, 4096), eps=st.floats(1e-6, 0.5))
def test_unbounded_context_is_far_beyond_one_vector(vocab: int, d: int, eps: float) -> None:
    log10 = unbounded_context(Ball(d, 1.0), eps=eps, vocab=vocab)
    assert math.isfinite(log10)
    assert log10 > math.log10(Ball(d, 1.0).log_packing(eps) / math.log(vocab))
    assert unbounded_context(Ball(d, 1.0), eps=eps, vocab=vocab, order=2) == pytest.approx(
        log10 + math.log10(2)
    )
    assert unbounded_context(Box(np.full(d, -1.0), np.full(d, 1.0)), eps=eps, vocab=vocab) == pytest.approx(
        log10
    )


# A decoder small enough to try every prompt --------------------------------------------------------


@pytest.mark.parametrize("eps", [0.25, 0.5, 1.0])
def test_a_toy_decoder_never_exceeds_the_count(eps: float) -> None:
    """d = 2, V = 8, m = 1, n = 2: the outputs of every prompt the precision tells apart."""
    vocab, radius = 8, 1.0
    steps = np.arange(-radius, radius + 1e-9, eps)
    bound = limit_from(Ball(2, radius), name="ball", eps=eps, vocab=vocab, note="")
    for seed in range(20):
        rng = np.random.default_rng(seed)
        head, table, mix = rng.normal(size=(vocab, 2)), rng.normal(size=(vocab, 2)), rng.normal(size=(2, 2))
        outputs = set()
        for prompt in itertools.product(steps, steps):
            state = np.array(prompt)
            first = int((head @ state).argmax())
            second = int((head @ np.tanh(mix @ state + table[first])).argmax())
            outputs.add((first, second))
        assert math.log(len(outputs)) <= bound.log_count(1, 2) + 1e-12
        assert bound.log_count(1, 2) <= math.log(64) + 1e-12


# Bad input -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"width": 0}, "width of at least 1"),
        ({"width": -3}, "width of at least 1"),
        ({"width": 2.5}, "width to be an integer"),
        ({"vocab": 0}, "vocabulary size of at least 2"),
        ({"vocab": 1}, "vocabulary size of at least 2"),
        ({"dtype": "flaot16"}, r"did you mean float16\?"),
        ({"vector_dtype": "float31"}, "did you mean"),
        ({"radius": 0.0}, "radius"),
        ({"radius": -1.0}, "radius"),
        ({"radius": math.nan}, "radius"),
        ({"input_radius": 0.0}, "input radius"),
        ({"hidden_radius": math.inf}, "radius"),
        ({"input_box": (np.zeros(3), np.ones(3))}, r"shape \(4,\)"),
        ({"hidden_box": (np.ones(4), np.zeros(4))}, "lo <= hi"),
        ({"hidden_box": (np.zeros(4), np.zeros(4))}, "above 0"),
        ({"norm_kind": "rms"}, "norm gain"),
        ({"norm_kind": "rms", "norm_gain": np.ones(3)}, "norm gain"),
        ({"norm_kind": "layer", "norm_gain": np.ones(4), "norm_bias": np.ones(3)}, "norm bias"),
        ({"norm_kind": "rms", "norm_gain": np.array([1.0, math.nan, 1.0, 1.0])}, "finite"),
    ],
)
def test_limits_refuse_what_they_cannot_use(change: dict[str, object], words: str) -> None:
    settings: dict[str, object] = {"width": 4, "vocab": 10, **change}
    with pytest.raises(InputError, match=words):
        limits(**settings)


def test_lengths_and_counts_must_be_positive() -> None:
    limit = ball(4, 10)
    for call in (
        lambda: limit.log_count(0),
        lambda: limit.log_share(0, 1),
        lambda: limit.log_share(1, -1),
        lambda: limit.longest_fully_possible(0),
        lambda: limit.length_at_share(0.0, 1),
        lambda: limit.length_at_share(1.5, 1),
        lambda: limit_from(Ball(2, 1.0), name="x", eps=None, vocab=10, note=""),
        lambda: unbounded_context(Ball(2, 1.0), eps=2.0, vocab=10),
        lambda: unbounded_context(Ball(2, 1.0), eps=0.5, vocab=10, order=0),
    ):
        with pytest.raises(InputError, match=r"expected .*; got .*; "):
            call()


# Asked backwards -----------------------------------------------------------------------------------


@given(d=st.integers(1, 40), vocab=st.integers(2, 10**5), n=st.integers(1, 300))
def test_fewest_vectors_are_those_found_by_counting_up(d: int, vocab: int, n: int) -> None:
    for limit in limits(width=d, vocab=vocab):
        slow = next(m for m in itertools.count(1) if limit.longest_fully_possible(m) >= n)
        assert limit.least_vectors(n) == slow


@settings(deadline=None, max_examples=25)
@given(vocab=st.integers(2, 10**5), n=st.integers(1, 60), m=st.integers(1, 4))
def test_least_widths_are_those_found_by_counting_up(vocab: int, n: int, m: int) -> None:
    slow: dict[str, int] = {}
    for width in itertools.count(1):
        for limit in limits(width=width, vocab=vocab, dtype="float16", vector_dtype="float16"):
            if limit.longest_fully_possible(m) >= n:
                slow.setdefault(limit.name, width)
        if len(slow) == 2:
            break
    assert least_widths(n, m, vocab=vocab, dtype="float16", vector_dtype="float16") == slow


def test_a_region_of_one_point_is_enough_for_no_number_of_vectors() -> None:
    point = replace(ball(2, 9), log_packing=0.0)
    assert point.longest_fully_possible(10**6) == 0
    assert point.least_vectors(1) is None
