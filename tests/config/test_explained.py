"""A value that does not fit is told in the names of the command line, whatever the kind of fault."""

import math

import pytest
from pydantic import ValidationError

from lmreach.config import CensusConfig, CopyConfig, CramPlan, StudyConfig
from lmreach.config.given import explained, options
from lmreach.config.settings import Settings
from lmreach.config.training import CopyTrainConfig


@pytest.mark.parametrize(
    ("kind", "given", "said"),
    [
        (StudyConfig, {"m": (0,)}, "expected -m/--vectors of at least 1; got 0; see --help"),
        (StudyConfig, {"m": ()}, "expected -m/--vectors with at least 1 of them; got ()"),
        (StudyConfig, {"m": "x"}, "expected -m/--vectors as a list; got x"),
        (StudyConfig, {"budget_s": -1}, "expected --budget above 0; got -1"),
        (StudyConfig, {"cram": {"max_steps": 0}}, "expected --max-steps of at least 1; got 0"),
        (StudyConfig, {"decoder_cells": "maybe"}, "expected --cells as true or false; got maybe"),
        (StudyConfig, {"nonsense": 1}, "expected --nonsense left out"),
        (StudyConfig, {"cram": 3}, "expected --cram as a table of settings; got 3"),
        (CramPlan, {"beta1": 1}, "expected --beta1 below 1; got 1"),
        (CramPlan, {"lr": math.nan}, "--lr"),
        (CramPlan, {"strings": "1.5"}, "expected --strings as a whole number; got 1.5"),
        (CramPlan, {"prefix": 3}, "expected --prefix as text; got 3"),
        (CramPlan, {"bos": "up"}, "expected --bos as 'none', 'before' or 'after'; got up"),
        (CramPlan, {"lr": 0, "strings": 0}, "expected --lr above 0, --strings of at least 1; got 0, 0"),
        (CensusConfig, {"n": 0}, "expected -n/--length of at least 1; got 0"),
        (CopyTrainConfig, {"max_steps": 0}, "expected --steps of at least 1; got 0"),
        (CopyConfig, {}, "expected settings that go together; got exactly one of train and model"),
    ],
)
def test_what_was_expected_and_what_came(kind, given: dict, said: str) -> None:
    with pytest.raises(ValidationError) as raised:
        kind.model_validate(given)
    message = explained(raised.value)
    assert message.startswith("expected ")
    assert said in message
    assert "\n" not in message
    assert "input should" not in message.lower()


@pytest.mark.parametrize("kind", Settings.__subclasses__(), ids=lambda kind: kind.__name__)
def test_every_setting_is_named_as_it_is_typed(kind) -> None:
    for option in options(kind):
        assert option.typed.startswith("-")
        assert "_" not in option.typed
