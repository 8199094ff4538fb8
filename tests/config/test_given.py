"""Settings by name: written values read back, names are one vocabulary, what does not fit is one line."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

import lmreach.config as configs
from lmreach.config import CellsConfig, CramPlan, LoadConfig, Settings, StudyConfig
from lmreach.config.given import configure, explained, options
from lmreach.config.written import levels, seconds, share, spoken_seconds, spoken_share
from lmreach.errors import InputError

FLAT = [
    kind
    for name in configs.__all__
    if isinstance(kind := getattr(configs, name), type)
    and issubclass(kind, Settings)
    and name not in ("Settings", "CopyConfig")
]


@given(st.none() | st.floats(1e-3, 1e7))
def test_times_and_shares_read_back(value: float | None) -> None:
    back = seconds(spoken_seconds(value))
    assert back == (value if value is None else pytest.approx(value, rel=1e-15))
    assert share(spoken_share(value)) == (value if value is None else pytest.approx(value, rel=1e-15))


@pytest.mark.parametrize(
    ("read", "word", "value"),
    [
        (seconds, "5m", 300.0),
        (seconds, "1.5h", 5400.0),
        (seconds, "NONE", None),
        (seconds, 12, 12),
        (share, "10%", 0.1),
        (share, "0.25", 0.25),
        (share, "none", None),
        (levels, "q=4", 4),
        (levels, "7", 7),
    ],
)
def test_words(read: Any, word: Any, value: Any) -> None:
    assert read(word) == value


@pytest.mark.parametrize("word", ["soon", "-4", "0", "90", "5 parsecs", "1e3"])
def test_words_that_say_no_time(word: str) -> None:
    with pytest.raises(InputError, match="a budget such as 90s"):
        seconds(word)


@pytest.mark.parametrize("kind", FLAT, ids=lambda kind: kind.__name__)
def test_no_two_settings_of_a_config_share_a_name(kind: type[Settings]) -> None:
    names = [name for option in options(kind) for name in option.names]
    assert len(names) == len(set(names))
    assert all(option.field.description for option in options(kind))


@pytest.mark.parametrize("kind", FLAT, ids=lambda kind: kind.__name__)
def test_every_setting_is_reached_by_every_name(kind: type[Settings]) -> None:
    default = kind()
    for option in options(kind):
        for name in option.names:
            again = configure(kind, None, {name: option.value(default)})
            assert again == default
            assert option.path[0] in again.model_fields_set


def test_settings_of_inner_configs_are_settings() -> None:
    asked = configure(
        StudyConfig, None, {"budget": "2m", "vectors": [1, 3], "max_steps": 7, "dtype": "bfloat16"}
    )
    assert asked == StudyConfig(
        budget_s=120, m=(1, 3), cram=CramPlan(max_steps=7), load=LoadConfig(dtype="bfloat16")
    )
    whole = configure(StudyConfig, asked, {"cram": CramPlan(strings=4), "seed": 5})
    assert whole.cram == CramPlan(strings=4, seed=5)
    assert (whole.budget_s, whole.load.dtype) == (120, "bfloat16")
    assert configure(StudyConfig, asked, {}) is asked


def test_the_published_protocol_keeps_its_own_defaults() -> None:
    asked = configure(StudyConfig, None, {"protocol": "published", "max_steps": 9})
    assert asked.cram == CramPlan(protocol="published", max_steps=9)
    assert asked.cram.patience == 500


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"bugdet": "2m"}, "did you mean 'budget'"),
        ({"stepps": 3}, "a setting of StudyConfig; got 'stepps'"),
        ({"strings": 0}, "expected --strings of at least 1; got 0"),
        ({"budget": "soon"}, "a budget such as"),
        ({"cram": 3}, "expected --cram as a table of settings; got 3"),
        ({"cram": LoadConfig(dtype="bfloat16")}, "expected --dtype left out"),
    ],
)
def test_what_does_not_fit_is_one_line(given: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError) as refused:
        configure(StudyConfig, None, given)
    assert said in str(refused.value)
    assert len(str(refused.value).splitlines()) == 1


def test_a_config_of_another_kind_is_refused() -> None:
    with pytest.raises(InputError, match="expected a StudyConfig; got a CellsConfig"):
        configure(StudyConfig, CellsConfig(), {})  # type: ignore[type-var]


def test_explained_names_every_fault() -> None:
    with pytest.raises(ValidationError) as refused:
        CramPlan.model_validate({"strings": 0, "lr": -1})
    text = explained(refused.value)
    assert "strings" in text
    assert "lr" in text


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"map": ["a", "b"]}, "three texts"),
        ({"measure": "ball"}, "a support for the ball measure"),
        ({"support": "f"}, "with --support"),
        ({"prompts": ["self"]}, "--measure empirical"),
        ({"text": "f"}, "--rare with --text"),
    ],
)
def test_cells_refuse_what_no_part_has_a_use_for(given: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        configure(CellsConfig, None, given)
