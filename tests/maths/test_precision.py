"""Number formats: counts against enumeration of every bit pattern, unit roundoff against rounding itself."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lmreach.errors import InputError
from lmreach.maths.precision import FORMAT_NAMES, number_format, precision_of, unit_roundoff


def patterns_of_float(exponent_bits: int, fraction_bits: int, *, finite_top: bool = False) -> np.ndarray:
    """Every finite value of a small float format, from its bit patterns one by one, +0 and -0 once."""
    bias = 2 ** (exponent_bits - 1) - 1
    values = set()
    for exponent in range(2**exponent_bits):
        for fraction in range(2**fraction_bits):
            top = exponent == 2**exponent_bits - 1
            if top and (not finite_top or fraction == 2**fraction_bits - 1):
                continue
            leading = fraction / 2**fraction_bits + (exponent > 0)
            value = math.ldexp(leading, max(exponent, 1) - bias)
            values |= {value, -value}
    return np.array(sorted(values))


def all_values(name: str) -> np.ndarray:
    every = {
        "float16": lambda: np.unique(_finite(np.arange(2**16, dtype=np.uint16).view(np.float16))),
        "bfloat16": lambda: np.unique(_finite((np.arange(2**16, dtype=np.uint32) << 16).view(np.float32))),
        "float8_e4m3": lambda: patterns_of_float(4, 3, finite_top=True),
        "float8_e5m2": lambda: patterns_of_float(5, 2),
        "int8": lambda: np.arange(-128, 128),
        "int4": lambda: np.arange(-8, 8),
    }
    return np.asarray(every[name](), dtype=np.float64)


def _finite(values: np.ndarray) -> np.ndarray:
    with np.errstate(invalid="ignore"):
        return values[np.isfinite(values)].astype(np.float64)


SMALL = ["float16", "bfloat16", "float8_e4m3", "float8_e5m2", "int8", "int4"]


@pytest.mark.parametrize("name", SMALL)
def test_count_of_all_finite_values(name: str) -> None:
    assert number_format(name).finite_values == all_values(name).size


def test_published_counts() -> None:
    assert number_format("float16").finite_values == 63487
    assert number_format("bfloat16").finite_values == 65279
    assert int(number_format("float16").count(-1, 1)) == 30721
    assert int(number_format("bfloat16").count(-1, 1)) == 32513
    # 2 (2^8 - 1) 2^23 patterns without the top exponent, minus the second zero.
    assert number_format("float32").finite_values == 2 * 255 * 2**23 - 1


@pytest.mark.parametrize("name", SMALL)
def test_count_between_any_two_values(name: str) -> None:
    values = all_values(name)
    rng = np.random.default_rng(0)
    ends = np.sort(rng.choice(values, (2, 4000)), axis=0)
    for nudge in (0.0, 1e-9, -1e-9):
        lo, hi = ends[0] * (1 + nudge), ends[1] * (1 - nudge)
        brute = np.searchsorted(values, hi, "right") - np.searchsorted(values, lo, "left")
        assert (number_format(name).count(lo, hi) == np.maximum(brute, 0)).all()


@pytest.mark.parametrize("name", SMALL)
def test_every_value_counts_once_and_gaps_hold_none(name: str) -> None:
    values = all_values(name)
    grid = number_format(name)
    assert (grid.count(values, values) == 1).all()
    inner = np.nextafter(values[:-1], np.inf), np.nextafter(values[1:], -np.inf)
    assert (grid.count(*inner) == 0).all()


@settings(deadline=None)
@given(st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), min_size=2, max_size=2))
def test_float32_count_equals_difference_of_bit_patterns(pair: list[float]) -> None:
    lo, hi = sorted(pair)

    def ordered(value: float) -> int:
        bits = int(np.float32(abs(value)).view(np.uint32))
        return bits if value >= 0 else -bits

    assert int(number_format("float32").count(lo, hi)) == ordered(hi) - ordered(lo) + 1


@settings(deadline=None)
@given(
    lo=st.floats(-1e30, 1e30),
    middle=st.floats(-1e30, 1e30),
    hi=st.floats(-1e30, 1e30),
    name=st.sampled_from(FORMAT_NAMES),
)
def test_counts_add_up(lo: float, middle: float, hi: float, name: str) -> None:
    lo, middle, hi = sorted((lo, middle, hi))
    grid = number_format(name)
    at_middle = int(grid.count(middle, middle))
    assert int(grid.count(lo, hi)) == int(grid.count(lo, middle)) + int(grid.count(middle, hi)) - at_middle


@pytest.mark.parametrize(
    ("name", "u"),
    [
        ("float32", 2**-24),
        ("tf32", 2**-11),
        ("float16", 2**-11),
        ("bfloat16", 2**-8),
        ("float8_e4m3", 2**-4),
        ("float8_e5m2", 2**-3),
        ("int8", 2**-8),
        ("int4", 2**-4),
    ],
)
def test_unit_roundoff(name: str, u: float) -> None:
    assert unit_roundoff(name) == u
    assert precision_of(name, 3.0) == 3.0 * u
    grid = number_format(name)
    if grid.fraction_bits is not None:
        # The next value above 1 is 1 + 2u, and nothing lies between.
        assert int(grid.count(1.0, 1.0 + 2 * u)) == 2


@pytest.mark.parametrize("name", ["torch.float16", "fp16", "half", "FLOAT16", " float16 "])
def test_common_names_are_understood(name: str) -> None:
    assert number_format(name).name == "float16"


def test_unknown_names_get_a_hint() -> None:
    with pytest.raises(InputError, match=r"did you mean float16\?"):
        number_format("flaot16")
    with pytest.raises(InputError, match="expected a dtype out of float32"):
        number_format("")


@pytest.mark.parametrize("radius", [0.0, -1.0, math.nan, math.inf])
def test_radius_must_be_positive(radius: float) -> None:
    with pytest.raises(InputError, match="radius"):
        precision_of("float16", radius)


def test_ends_must_be_finite_and_empty_intervals_hold_nothing() -> None:
    with pytest.raises(InputError, match="finite ends"):
        number_format("float16").count(0, math.inf)
    assert int(number_format("float16").count(1, -1)) == 0
