"""Rounding of vectors to narrower formats."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lmreach.errors import InputError
from lmreach.experiments.cramming.quantise import FORMATS, quantise


def vectors(seed: int, scale: float = 1.0) -> torch.Tensor:
    return scale * torch.randn(3, 40, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize(("name", "levels"), [("int8", 255), ("int4", 15), ("int3", 7), ("int2", 3)])
def test_integers_have_their_number_of_levels_and_keep_the_largest_value(name: str, levels: int) -> None:
    row = torch.linspace(-1, 1, 4001)[None]
    rounded = quantise(row, name)
    assert len(rounded.unique()) == levels
    assert float(rounded.abs().max()) == pytest.approx(1.0)
    assert float((rounded - row).abs().max()) <= 1.001 / (levels - 1)


@given(st.sampled_from(sorted(FORMATS)), st.integers(0, 99), st.integers(-12, 12))
def test_a_format_with_a_scale_of_its_own_does_not_care_about_units(name: str, seed: int, power: int) -> None:
    """Powers of two only, so that the scale itself is exact."""
    factor = 2.0**power
    one, other = quantise(vectors(seed), name), quantise(vectors(seed, factor), name)
    assert torch.allclose(one * factor, other, rtol=1e-6, atol=0)


@given(st.sampled_from(sorted(FORMATS)), st.integers(0, 99))
def test_rounding_twice_changes_nothing_more(name: str, seed: int) -> None:
    once = quantise(vectors(seed), name)
    assert torch.allclose(quantise(once, name), once, rtol=1e-6, atol=0)


def test_wider_formats_round_less() -> None:
    row = vectors(0)
    errors = [float((quantise(row, n) - row).norm()) for n in ("float16", "int8", "int4", "int3", "int2")]
    assert errors == sorted(errors)
    assert errors[0] < 1e-3 * float(row.norm())


def test_vectors_far_beyond_float16_do_not_overflow() -> None:
    for name in FORMATS:
        assert bool(quantise(vectors(0, 1e7), name).isfinite().all())


def test_zeros_stay_zeros_and_unknown_names_are_refused() -> None:
    for name in FORMATS:
        assert not bool(quantise(torch.zeros(2, 4), name).any())
    with pytest.raises(InputError, match="int4"):
        quantise(torch.zeros(2, 4), "int5")


def test_the_scale_is_part_of_the_bits() -> None:
    assert FORMATS["int4"].bits_per_coordinate(64) == 4.5
    assert FORMATS["bfloat16"].bits_per_coordinate(64) == 16
