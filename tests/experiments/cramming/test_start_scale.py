"""The length of the first vectors: the best of those tried, the smallest of equals, and what stops it."""

import pytest

from lmreach.config import OptimiserConfig
from lmreach.experiments.cramming import start_scale as module
from lmreach.experiments.cramming.cram import CramResult
from lmreach.experiments.cramming.start_scale import choose_start_scale


def pretend(monkeypatch: pytest.MonkeyPatch, reach_at) -> list[float]:
    """Let a string's reach follow from the scale alone; returns the scales asked for."""
    asked: list[float] = []

    def cram(model, ids, m, config, *, generators, **_rest):
        asked.append(config.start_scale)
        return [
            CramResult(i, reach_at(config.start_scale), "gave_up", None, None, None, 0, 1)
            for i in range(len(ids))
        ]

    monkeypatch.setattr(module, "cram", cram)
    return asked


@pytest.mark.parametrize("best", [1.0, 10.0, 100.0, 1e3, 1e4, 1e5])
def test_a_peak_is_found(best: float, monkeypatch: pytest.MonkeyPatch, random_model) -> None:
    ratio = lambda scale: max(scale / best, best / scale)  # noqa: E731
    asked = pretend(monkeypatch, lambda scale: max(0, 20 - round(ratio(scale) ** 0.5)))
    found = choose_start_scale(random_model, OptimiserConfig())
    assert found.scale == best
    assert set(found.reaches) == set(asked)
    assert len(asked) == len(set(asked)) <= 5


def test_the_length_of_real_inputs_wins_a_tie(monkeypatch: pytest.MonkeyPatch, random_model) -> None:
    pretend(monkeypatch, lambda _scale: 3)
    assert choose_start_scale(random_model, OptimiserConfig()).scale == 1.0


def test_length_is_not_taken_for_what_may_be_chance(monkeypatch: pytest.MonkeyPatch, random_model) -> None:
    """One string of eight that reaches further at 10^4 is no reason; all eight are."""
    lucky = [3, 3, 3, 3, 3, 3, 3, 3]

    def reaches(model, ids, m, config, **_rest):
        gains = [4 * (i == 0) for i in range(8)] if config.start_scale == 1e4 else [0] * 8
        return [
            CramResult(i, lucky[i] + gains[i], "gave_up", None, None, None, 0, 1) for i in range(len(ids))
        ]

    monkeypatch.setattr(module, "cram", reaches)
    assert choose_start_scale(random_model, OptimiserConfig()).scale == 1.0
    monkeypatch.setattr(
        module,
        "cram",
        lambda model, ids, m, config, **_rest: [
            CramResult(i, 3 + (config.start_scale == 1e4) * (1 + i % 2), "gave_up", None, None, None, 0, 1)
            for i in range(len(ids))
        ],
    )
    assert choose_start_scale(random_model, OptimiserConfig()).scale == 1e4


def test_a_stop_leaves_the_length_of_real_inputs(random_model) -> None:
    found = choose_start_scale(random_model, OptimiserConfig(), stop=lambda: True)
    assert found.scale == 1.0
    assert found.reaches == {}


def test_the_choice_is_the_same_again(random_model) -> None:
    assert choose_start_scale(random_model, OptimiserConfig()) == choose_start_scale(
        random_model, OptimiserConfig()
    )
