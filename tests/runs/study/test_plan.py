"""A plan is what a study would do, and leaves nothing behind."""

from pathlib import Path

import pytest

from lmreach.config import CramPlan, StudyConfig
from lmreach.errors import InputError
from lmreach.results.plan import PlanResults
from lmreach.runs.study.plan import plan


@pytest.fixture(scope="module")
def planned() -> PlanResults:
    return plan("builtin:random", StudyConfig(budget_s=120.0, m=(1, 2)))


def test_a_plan_fits_its_budget(planned: PlanResults) -> None:
    first = planned.conditions[0]
    assert (first.target, first.m) == ("random", 1)
    assert {one.steps for one in planned.conditions} == {first.steps}
    assert planned.then_s is not None
    assert planned.elsewhere_s is not None
    total = planned.before_s + planned.measuring_s + planned.elsewhere_s + planned.then_s
    assert total == pytest.approx(120.0, rel=0.2)
    assert planned.peak_bytes > 2**27


def test_a_plan_in_words_and_as_json(planned: PlanResults) -> None:
    words = str(planned)
    assert "8 strings of random targets at m = 1" in words
    assert "Memory: about" in words
    assert PlanResults.model_validate_json(planned.to_json()) == planned


def test_without_a_budget_all_strings_are_planned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    found = plan("builtin:random", budget_s=None, m=(1, 2), cram=CramPlan(strings=5, max_steps=10))
    assert [(one.target, one.m, one.strings, one.steps) for one in found.conditions] == [
        (kind, m, 5, 10) for m in (1, 2) for kind in ("random", "self")
    ]
    assert found.then_s is None
    assert list(tmp_path.iterdir()) == []


def test_what_a_study_refuses_is_refused() -> None:
    with pytest.raises(InputError, match="512"):
        plan("builtin:random", m=(600,))
