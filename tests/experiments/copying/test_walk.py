"""Which lengths are measured: the fall is closed in on, and hopeless lengths take no time."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmreach.experiments.copying.walk import grid, next_length, skipped


def walked(right: object, lengths: list[int], trained_to: int | None) -> dict[int, tuple[int, int]]:
    done: dict[int, tuple[int, int]] = {}
    while (n := next_length(done, lengths, trained_to=trained_to)) is not None:
        assert n not in done
        done[n] = (right(n), 64)
    return done


@given(st.floats(1.0, 300.0), st.floats(0.005, 1.0), st.sampled_from([None, 16, 50]))
def test_the_fall_is_bracketed(n50: float, width: float, trained_to: int | None) -> None:
    lengths = grid(trained_to, 320)
    done = walked(
        lambda n: round(64 / (1 + np.exp(np.clip((n - n50) / (width * n50), -50, 50)))), lengths, trained_to
    )
    order = sorted(done)
    falls = [(a, b) for a, b in pairwise(order) if 2 * done[a][0] >= 64 > 2 * done[b][0]]
    assert len(falls) <= 1
    for a, b in falls:
        gradual = all(abs(done[n][0] / 64 - 0.5) <= 1 / 8 for n in (a, b))
        assert gradual or b - a <= max(1, 0.04 * b)
    assert len(done) <= len(lengths) + 9


def test_lengths_of_training_are_all_measured_and_hopeless_ones_are_not() -> None:
    lengths = grid(16, 320)
    done = walked(lambda n: 64 if n <= 3 else 0, lengths, 16)
    assert {1, 4, 8, 12, 16} <= set(done)
    assert skipped(done, lengths) == [18, 20, 24, 32, 48, 80, 160]
    assert sorted(walked(lambda n: 0, grid(None, 100), None)) == [1, 2]


def test_a_model_that_never_fails_is_tried_at_every_length() -> None:
    assert sorted(walked(lambda n: 64, grid(16, 320), 16)) == grid(16, 320)


@pytest.mark.parametrize(
    ("trained_to", "longest"), [(1, 1), (1, 20), (16, 10), (50, 1000), (None, 1), (None, 100)]
)
def test_grids_ascend_to_the_longest(trained_to: int | None, longest: int) -> None:
    lengths = grid(trained_to, longest)
    assert lengths == sorted(set(lengths))
    assert lengths[0] == 1
    assert lengths[-1] == longest


def test_what_was_measured_alone_decides() -> None:
    lengths = grid(8, 160)

    def right(n: int) -> int:
        return 64 if n < 37 else 0

    whole = walked(right, lengths, 8)
    part = dict(list(whole.items())[:5])
    while (n := next_length(part, lengths, trained_to=8)) is not None:
        part[n] = (right(n), 64)
    assert list(part) == list(whole)
