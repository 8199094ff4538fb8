"""Strings of a run: each is what it is, however many are drawn and in whatever order."""

import numpy as np
import pytest

from lmreach.config import CramPlan, StudyConfig
from lmreach.experiments.targets import draw as drawing
from lmreach.models.load import load
from lmreach.runs.study import strings as module
from lmreach.runs.study.strings import Strings


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """Note how many strings are drawn, and how long."""
    seen: list[tuple[int, int]] = []

    def noting(model: object, kind: str, strings: int, n: int, *, seed: int) -> drawing.Targets:
        seen.append((strings, n))
        return drawing.draw(model, kind, strings, n, seed=seed)  # type: ignore[arg-type]

    monkeypatch.setattr(module, "draw", noting)
    return seen


@pytest.mark.parametrize("kind", ["random", "self"])
def test_no_more_are_drawn_than_asked_and_more_change_none(kind: str, drawn: list[tuple[int, int]]) -> None:
    model = load("builtin:random")
    config = StudyConfig(model="builtin:random", targets=(kind,), m=(1, 2), cram=CramPlan(strings=40))
    strings = Strings(model, config, lambda _what: None)
    few = strings.ids(kind, 6, 3)
    assert few.shape == (3, 6)
    longer = strings.ids(kind, 9, 2)
    more = strings.ids(kind, 5, 40)
    assert drawn == [(3, 6), (3, 9), (40, 9)]
    np.testing.assert_array_equal(longer[:, :6], few[:2])
    np.testing.assert_array_equal(more[:3], few[:, :5])
    np.testing.assert_array_equal(more[:2], longer[:, :5])
    strings.ids(kind, 9, 40)
    assert len(drawn) == 3
