"""Keys: everything that can change an outcome changes the key, nothing else does."""

import numpy as np
import pytest

from lmreach.config import CramPlan
from lmreach.engine.keys import cram_key, digest, key_seed, occurrences

BASE = {
    "fingerprint": "f" * 16,
    "dtype": "float32",
    "m": 1,
    "target": np.array([1, 2, 3]),
    "config": CramPlan(),
}


@pytest.mark.parametrize(
    "change",
    [
        {"fingerprint": "e" * 16},
        {"dtype": "bfloat16"},
        {"m": 2},
        {"occurrence": 1},
        {"target": np.array([1, 2])},
        {"target": np.array([3, 2, 1])},
        *(
            {"config": CramPlan(**one)}
            for one in (
                {"seed": 1},
                {"bos": "before"},
                {"lr": 0.25},
                {"max_steps": 7},
                {"protocol": "fixed"},
                {"restarts": 2},
                {"prefix": "a"},
                {"suffix": "a"},
            )
        ),
    ],
)
def test_what_changes_the_outcome_changes_the_key(change: dict) -> None:
    assert cram_key(**{**BASE, **change}) != cram_key(**BASE)


@pytest.mark.parametrize("change", [{"strings": 5}, {"batch_size": 3}])
def test_host_order_and_batch_do_not(change: dict) -> None:
    assert cram_key(**{**BASE, "config": CramPlan(**change)}) == cram_key(**BASE)


@pytest.mark.parametrize("protocol", ["fixed", "published"])
def test_a_trial_at_one_length_is_that_of_its_target(protocol: str) -> None:
    """Which other lengths are tried, and up to where, is no part of it; under frontier the limit is."""
    one = {**BASE, "config": CramPlan(protocol=protocol, length=(3, 9), n_max=40)}
    other = {**BASE, "config": CramPlan(protocol=protocol, length=(3,), n_max=70)}
    assert cram_key(**one) == cram_key(**other)
    assert cram_key(**{**one, "target": np.array([1, 2])}) != cram_key(**one)
    limits = [{**BASE, "config": CramPlan(n_max=n)} for n in (40, 70)]
    assert cram_key(**limits[0]) != cram_key(**limits[1])


PINNED = [
    ({}, "86db79399607fcc5e8ac230867ec32ab", 242227271483563000),
    ({"start_scale": 10.0, "seed": 7}, "b17b88089409bf4d70b401f29ec17dab", 338801796256691120),
    ({"protocol": "fixed"}, "99c47d4c8c94ca3960b2b47ab2c5bc2d", 255601394639831320),
    ({"protocol": "published"}, "882529dbbd8e79acd7df41239ea98e82", 731744890509581842),
    ({"prefix": "a"}, "5d266896f8adecc88d2b51ca6c90c3ed", 664460876912344690),
]


@pytest.mark.parametrize(("settings", "key", "draw"), PINNED)
def test_a_key_and_its_seed_are_the_same_in_every_process_and_version(
    settings: dict, key: str, draw: int
) -> None:
    """Values of the version that made the recorded runs: another key would orphan them all."""
    asked = {**BASE, "config": CramPlan(**settings)}
    assert cram_key(**asked) == key
    assert cram_key(**{**asked, "target": np.array([1, 2, 3], dtype=np.int32)}) == key
    assert key_seed(key, 0).integers(1 << 60) == draw


def test_occurrences_and_digests_are_pinned_too() -> None:
    assert cram_key(**BASE, occurrence=2) == "ad850e72d2d9d53b208626c52d73cf71"
    assert digest({"b": [1, 2.5, None], "a": "é"}) == "84afbf1d4853005f9dd0c81cb1819b53"


def test_equal_strings_are_trials_of_their_own() -> None:
    targets = np.array([[1, 2], [3, 4], [1, 2], [1, 2]])
    assert occurrences(targets) == [0, 0, 1, 2]


def test_seeds_follow_the_key() -> None:
    key = cram_key(**BASE)
    assert key_seed(key, 0).integers(1 << 60) == key_seed(key, 0).integers(1 << 60)
    assert key_seed(key, 0).integers(1 << 60) != key_seed(key, 1).integers(1 << 60)
