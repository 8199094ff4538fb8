"""Keys: everything that can change an outcome changes the key, nothing else does."""

from pathlib import Path

import numpy as np
import pytest

from lmreach.config import CramPlan
from lmreach.engine import keys
from lmreach.engine.keys import RECORD_VERSION, cram_key, digest, key_seed, occurrences, record_version
from lmreach.engine.store import Store
from lmreach.results.records import Record

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
PINNED_NOW = [
    ({}, "66d1178f5e20d99613f6220ccb237230", 192121798138799965),
    ({"start_scale": 10.0, "seed": 7}, "856c05d324645ae0db278256a890f6dd", 75533624516890701),
    ({"protocol": "fixed"}, "1d330ab69b627c7d56f31434f0d8370f", 809805197141998972),
    ({"protocol": "published"}, "b04c44239e3eab647c3ee53227d74102", 80620114024923974),
    ({"prefix": "a"}, "dfae6dab951e2a8ceed5d40c5c426881", 609815573034266464),
    ({"max_steps": 500}, "fbf264406a29c389b10637831568c3da", 665828920170844417),
]


@pytest.mark.parametrize(("settings", "key", "draw"), PINNED)
def test_keys_of_version_1_are_those_of_the_recorded_runs(settings: dict, key: str, draw: int) -> None:
    """Another key would orphan every trial of runs from before version 2."""
    asked = {**BASE, "config": CramPlan(**settings), "version": 1}
    assert cram_key(**asked) == key
    assert cram_key(**{**asked, "target": np.array([1, 2, 3], dtype=np.int32)}) == key
    assert key_seed(key, 0).integers(1 << 60) == draw
    found = settings.get("start_scale")
    if found is not None:  # what was found stood where what was asked for stands now
        rest = {name: value for name, value in settings.items() if name != "start_scale"}
        assert cram_key(**{**asked, "config": CramPlan(**rest)}, start_scale=found) == key


@pytest.mark.parametrize(("settings", "key", "draw"), PINNED_NOW)
def test_a_key_and_its_seed_are_the_same_in_every_process_and_version(
    settings: dict, key: str, draw: int
) -> None:
    asked = {**BASE, "config": CramPlan(**settings)}
    assert cram_key(**asked) == key
    assert cram_key(**{**asked, "target": np.array([1, 2, 3], dtype=np.int32)}) == key
    assert key_seed(key, 0).integers(1 << 60) == draw


def test_occurrences_and_digests_are_pinned_too() -> None:
    assert cram_key(**BASE, occurrence=2, version=1) == "ad850e72d2d9d53b208626c52d73cf71"
    assert digest({"b": [1, 2.5, None], "a": "é"}) == "84afbf1d4853005f9dd0c81cb1819b53"


def test_every_setting_says_what_it_means_when_it_is_not_said() -> None:
    """A new one has to: it would change every key otherwise. Those of a plan alone are no part of a key."""
    settings = set(CramPlan.model_fields) - keys._NOT_IN_KEY
    assert settings == set(keys._UNSAID)
    for name in settings:
        CramPlan.model_validate({name: keys._UNSAID[name]})


def test_a_new_setting_and_a_new_default_leave_old_keys_as_they_are() -> None:
    class Later(CramPlan):
        warmup: int = 5
        max_steps: int = 500

    now = cram_key(**BASE)
    unsaid = {**keys._UNSAID, "warmup": 5}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(keys, "_UNSAID", unsaid)
        assert cram_key(**{**BASE, "config": Later(max_steps=300)}) == now
        assert cram_key(**{**BASE, "config": Later()}) == cram_key(
            **{**BASE, "config": CramPlan(max_steps=500)}
        )
        assert cram_key(**{**BASE, "config": Later(max_steps=300, warmup=6)}) != now


def test_what_was_found_is_no_part_of_a_key() -> None:
    assert cram_key(**BASE, start_scale=1e4) == cram_key(**BASE)
    asked = {**BASE, "config": CramPlan(start_scale=1e4)}
    assert cram_key(**asked) != cram_key(**BASE)


def test_a_run_keeps_the_version_it_began_with(tmp_path: Path) -> None:
    with Store(tmp_path / "new") as store:
        assert record_version(store) == RECORD_VERSION
        store.add("0" * 32, "random m=1", Record())
        assert record_version(store) == RECORD_VERSION
    with Store(tmp_path / "old") as store:
        store.add("0" * 32, "random m=1", Record())
        assert record_version(store) == 1


def test_equal_strings_are_trials_of_their_own() -> None:
    targets = np.array([[1, 2], [3, 4], [1, 2], [1, 2]])
    assert occurrences(targets) == [0, 0, 1, 2]


def test_seeds_follow_the_key() -> None:
    key = cram_key(**BASE)
    assert key_seed(key, 0).integers(1 << 60) == key_seed(key, 0).integers(1 << 60)
    assert key_seed(key, 0).integers(1 << 60) != key_seed(key, 1).integers(1 << 60)


def test_a_premise_is_part_of_the_key_and_its_absence_is_not() -> None:
    """Keys written before there were premises stay what they are."""
    asked_keys = [
        cram_key(**{**BASE, "config": config})
        for config in (
            CramPlan(),
            CramPlan(within="sign"),
            CramPlan(within="int2"),
            CramPlan(within="sign:vector"),
            CramPlan(within="sign", flips=7),
        )
    ]
    assert len(set(asked_keys)) == 5
    spelt = CramPlan(within=" SIGN")
    assert cram_key(**{**BASE, "config": spelt}) == asked_keys[1]
