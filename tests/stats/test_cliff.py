"""How sharply reach falls."""

import math

import numpy as np
import pytest

from lmreach.errors import InputError
from lmreach.stats.cliff import cliff


def fall(reaches, limit=1000, vocab=1000):
    reach = np.minimum(np.asarray(reaches), limit)
    return cliff(reach, reach >= limit, vocab=vocab, rng=np.random.default_rng(0))


def test_counting_alone_allows_a_fraction_of_a_token() -> None:
    found = fall(np.full(40, 20), vocab=50304)
    assert found.predicted == pytest.approx(math.log(9) / math.log(50304))
    assert found.predicted == pytest.approx(0.2029, abs=1e-4)
    # All strings of one length: the joined curve falls from 20 to 21, nine tenths to one tenth within 0.8.
    assert found.width == pytest.approx(0.8)
    assert found.relative == pytest.approx(0.8 / 20.5)
    assert "0.20 tokens" in found.words()


def test_a_geometric_tail_gives_its_factor() -> None:
    reach = np.random.default_rng(0).geometric(1 - 0.9, 20_000) - 1
    found = fall(reach)
    assert found.factor_per_token == pytest.approx(1 / 0.9, rel=0.03)
    assert found.low < math.log(9) / math.log(1 / 0.9) < found.high


def test_beyond_the_limit_there_is_no_width() -> None:
    found = fall(np.arange(1, 41), limit=30)
    assert found.n50 is not None
    assert (found.n10, found.width, found.low, found.high, found.relative) == (None,) * 5
    assert "not known" in found.words()
    assert fall(np.full(9, 50), limit=30).n50 is None


def test_four_times_the_strings_halve_the_interval() -> None:
    reach = np.random.default_rng(3).poisson(40, 200)
    once, more = fall(reach), fall(np.tile(reach, 4))
    assert (more.high - more.low) / (once.high - once.low) == pytest.approx(0.5, abs=0.15)


def test_no_strings_are_refused() -> None:
    with pytest.raises(InputError, match="measure first"):
        fall([])
