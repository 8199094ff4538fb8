"""Tables of small formats: against torch's own bit patterns, against the counts of `maths.precision`."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lmreach.errors import InputError
from lmreach.maths.levels import LEVELS, levels, pack, unpack
from lmreach.maths.precision import number_format

TORCH = {
    "float16": torch.float16,
    "bfloat16": torch.bfloat16,
    "e4m3": torch.float8_e4m3fn,
    "e5m2": torch.float8_e5m2,
}
COUNTED = {"float16": "float16", "bfloat16": "bfloat16", "e4m3": "float8_e4m3", "e5m2": "float8_e5m2"}


def patterns(name: str) -> torch.Tensor:
    """Every bit pattern of a floating-point format, read by torch."""
    table = levels(name)
    raw = torch.arange(2**table.bits)
    kind = torch.int16 if table.bits == 16 else torch.uint8
    return raw.to(torch.int32).to(kind).view(TORCH[name]).double()


@pytest.mark.parametrize("name", TORCH)
def test_every_finite_pattern_is_there_with_the_value_torch_gives_it(name: str) -> None:
    table, read = levels(name), patterns(name)
    assert np.array_equal(table.values, np.unique(read[torch.isfinite(read)].numpy()))
    assert np.array_equal(read.numpy()[table.codes], table.values)
    assert table.count == number_format(COUNTED[name]).finite_values


@pytest.mark.parametrize(("name", "bits"), [("int8", 8), ("int4", 4), ("int3", 3), ("int2", 2), ("sign", 1)])
def test_evenly_spaced_formats_use_every_pattern_and_are_symmetric(name: str, bits: int) -> None:
    table = levels(name)
    assert table.count == 2**bits == len(set(table.codes.tolist()))
    assert np.array_equal(table.values, -table.values[::-1])
    assert set(np.diff(table.values).tolist()) == {2.0}


@pytest.mark.parametrize("name", LEVELS)
def test_what_is_encoded_and_packed_comes_back(name: str, rng: np.random.Generator) -> None:
    table = levels(name)
    values = rng.choice(table.values, size=(3, 7))
    data = pack(table.encode(values), table.bits)
    assert data.nbytes == -(-table.bits * values.size // 8)
    assert np.array_equal(table.decode(unpack(data, table.bits, 21)).reshape(3, 7), values)


@given(st.integers(1, 16), st.lists(st.integers(0, 2**16 - 1), max_size=40))
def test_packing_keeps_every_code(bits: int, codes: list[int]) -> None:
    own = np.asarray([code % 2**bits for code in codes], dtype=np.int64)
    assert np.array_equal(unpack(pack(own, bits), bits, len(own)), own)


def test_values_that_a_format_does_not_hold_are_refused() -> None:
    for name, value in (("float16", 70000.0), ("float16", 1 + 2.0**-12), ("sign", 0.0), ("int4", 17.0)):
        with pytest.raises(InputError, match=f"values of {name}"):
            levels(name).encode(np.asarray([1.0, value]))
    with pytest.raises(InputError, match="values of e4m3"):
        levels("e4m3").encode(np.asarray([np.nan]))
    with pytest.raises(InputError, match="0x7c00"):
        levels("float16").decode(np.asarray([0x3C00, 0x7C00]))
    with pytest.raises(InputError, match="3 bytes"):
        unpack(np.zeros(2, dtype=np.uint8), 8, 3)
    with pytest.raises(InputError, match="float16, bfloat16"):
        levels("int5")
