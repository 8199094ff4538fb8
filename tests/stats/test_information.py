"""Bits of ids beside bits of vectors."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmreach.errors import InputError
from lmreach.stats.information import Information


def test_many_tokens_per_vector_are_no_compression() -> None:
    """The published 1568 tokens in one vector of Llama 8B at 16 bits."""
    view = Information(tokens=1568, vectors=1, width=4096, vocab=128256, bits_per_value=16)
    assert view.tokens_per_vector == 1568
    assert round(view.bits_ids) == 26607
    assert view.bits_vectors == 65536
    assert view.bits_ratio == pytest.approx(0.406, abs=5e-4)
    assert view.bits_per_coordinate == pytest.approx(26607 / 4096, rel=1e-4)
    assert view.words() == "1568 tokens per vector: 26607 bits of ids against 65536 bits of vector = 0.406"


@given(
    tokens=st.floats(0, 1e6),
    vectors=st.integers(1, 1000),
    width=st.integers(1, 65536),
    vocab=st.integers(2, 300_000),
)
def test_the_readings_agree_with_each_other(tokens: float, vectors: int, width: int, vocab: int) -> None:
    view = Information(tokens, vectors, width, vocab, 32)
    assert view.bits_ids == pytest.approx(tokens * math.log2(vocab))
    assert view.bits_ratio * 32 == pytest.approx(view.bits_per_coordinate)
    assert view.tokens_per_vector * vectors == pytest.approx(tokens)
    assert all(math.isfinite(value) for value in view.as_dict().values() if not isinstance(value, str))


@pytest.mark.parametrize(
    "change",
    [
        {"tokens": -1.0},
        {"tokens": math.nan},
        {"vectors": 0},
        {"width": 0},
        {"vocab": 1},
        {"bits_per_value": 0},
    ],
)
def test_sizes_must_be_positive(change: dict[str, float]) -> None:
    sizes = {"tokens": 1.0, "vectors": 1, "width": 4, "vocab": 10, "bits_per_value": 16, **change}
    with pytest.raises(InputError, match=r"expected .*; got .*; "):
        Information(**sizes)  # type: ignore[arg-type]
