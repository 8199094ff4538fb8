"""The length of the first vectors: the best of those tried, the smallest of equals, and what stops it."""

import json
from dataclasses import replace
from math import log10

import pytest
import torch

from lmreach.config import OptimiserConfig
from lmreach.experiments.cramming import start_cache, start_scale
from lmreach.experiments.cramming import start_probes as module
from lmreach.experiments.cramming.cram import CramResult, StepReport
from lmreach.experiments.cramming.start_probes import full_probe, quick_probe
from lmreach.experiments.cramming.start_scale import StartScale, choose_start_scale, find_start
from lmreach.results.study import StartProbe


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


def test_a_stop_leaves_the_length_of_real_inputs_and_says_so(random_model) -> None:
    found = choose_start_scale(random_model, OptimiserConfig(), stop=lambda: True)
    assert (found.scale, found.reaches, found.why) == (1.0, {}, "the run was stopped")
    found = choose_start_scale(random_model, OptimiserConfig(), seconds=0.0)
    assert (found.scale, found.reaches) == (1.0, {})
    assert "time was too short" in found.why


def test_less_time_gives_a_quick_probe_and_hardly_any_gives_none(random_model, monkeypatch) -> None:
    """With steps of 1 s for 8 strings a full probe needs 300 s, with room for growth, a quick one 30 s."""
    clock = [0.0]
    sizes: list[tuple[int, int]] = []

    def cram(model, ids, m, config, *, on_step, stop, **_rest):
        before = clock[0]
        for _ in range(config.max_steps):
            if stop():
                return []
            clock[0] += len(ids) / 8
            on_step(StepReport(len(ids), 1, 1, (), torch.full((len(ids),), 9.0 - log10(config.start_scale))))
        sizes.append((len(ids), round((clock[0] - before) * 8 / len(ids))))
        return [CramResult(i, 3, "spent", None, None, None, 0, 1) for i in range(len(ids))]

    monkeypatch.setattr(module, "cram", cram)
    monkeypatch.setattr(start_scale.time, "monotonic", lambda: clock[0])
    for seconds, size, scale in ((400, (8, 40), 1.0), (200, (4, 10), 1e6), (60, (4, 10), 1e6)):
        sizes.clear()
        found = choose_start_scale(random_model, OptimiserConfig(), seconds=seconds)
        assert set(sizes) == {size}
        assert (found.strings, found.steps, found.why, found.scale) == (*size, "", scale)
        assert found.is_quick == (size == (4, 10))
    assert found.losses[1e4] == (5.0,) * 4
    found = choose_start_scale(random_model, OptimiserConfig(), seconds=20)
    assert (found.steps, found.reaches) == (0, {})
    assert found.why


def test_a_quick_probe_agrees_with_a_full_one_on_a_model_of_random_weights(random_model) -> None:
    full, quick = (probe(random_model, OptimiserConfig(), 1, None) for probe in (full_probe, quick_probe))
    reaches, _ = full.attempt(1.0, lambda: False)
    _, losses = quick.attempt(1.0, lambda: False)
    far_reaches, _ = full.attempt(1e6, lambda: False)
    _, far_losses = quick.attempt(1e6, lambda: False)
    assert len(reaches) == 8
    assert len(losses) == 4
    assert (sum(reaches) > sum(far_reaches)) == (sum(losses) < sum(far_losses))


def test_a_quick_probe_is_kept_for_those_without_time_alone(random_model, monkeypatch, tmp_path) -> None:
    monkeypatch.setattr(start_cache, "folder", lambda: tmp_path / "starts")
    made: list[float | None] = []

    def choose(model, config, *, m, search, seconds, stop):
        made.append(seconds)
        losses = {} if seconds is None else {1e4: (1.0,) * 4}
        return StartScale(1.0 if seconds is None else 1e4, m, {1e4: (1,) * 4}, 10, losses=losses)

    monkeypatch.setattr(start_scale, "choose_start_scale", choose)
    first = find_start(random_model, OptimiserConfig(), m=1, seconds=5.0)
    assert find_start(random_model, OptimiserConfig(), m=1, seconds=7.0) == first
    assert find_start(random_model, OptimiserConfig(), m=1).scale == 1.0
    assert find_start(random_model, OptimiserConfig(), m=1, seconds=5.0).scale == 1.0, "a full one is better"
    assert made == [5.0, None]


def test_a_probe_is_made_once_for_a_model_and_m(random_model, monkeypatch, tmp_path) -> None:
    monkeypatch.setattr(start_cache, "folder", lambda: tmp_path / "starts")
    asked = pretend(monkeypatch, lambda scale: 5 + (scale == 100.0))
    config = OptimiserConfig()
    first = find_start(random_model, config, m=1)
    assert first.scale == 100.0
    assert len(asked) == 5
    for other in (config, OptimiserConfig(seed=9, max_steps=20, protocol="fixed")):
        assert find_start(random_model, other, m=1) == first
    assert len(asked) == 5
    for changed, m in ((config, 2), (OptimiserConfig(lr=0.1), 1), (OptimiserConfig(bos="before"), 1)):
        before = len(asked)
        find_start(random_model, changed, m=m)
        assert len(asked) == before + 5
    (kept,) = [json.loads(path.read_text()) for path in (tmp_path / "starts").iterdir() if ok(path, 1, 0.5)]
    assert kept["probe"]["reaches"]["100"] == [6] * 8
    assert kept["key"]["fingerprint"] == random_model.facts.fingerprint


def ok(path, m: int, lr: float) -> bool:
    key = json.loads(path.read_text())["key"]
    return (key["m"], key["config"]["lr"], key["config"]["bos"]) == (m, lr, "none")


def test_what_cannot_be_read_is_found_again_and_what_cannot_be_written_is_not_kept(
    random_model, monkeypatch, tmp_path
) -> None:
    place = tmp_path / "starts"
    monkeypatch.setattr(start_cache, "folder", lambda: place)
    asked = pretend(monkeypatch, lambda _scale: 5)
    find_start(random_model, OptimiserConfig(), m=1)
    (file,) = place.iterdir()
    file.write_text("{ half")
    find_start(random_model, OptimiserConfig(), m=1)
    assert len(asked) == 8, "two probes of four lengths"
    monkeypatch.setattr(start_cache, "folder", lambda: file / "below a file")
    assert find_start(random_model, OptimiserConfig(), m=1).scale == 1.0


def test_a_choice_that_is_not_founded_is_not_kept(random_model, monkeypatch, tmp_path) -> None:
    monkeypatch.setattr(start_cache, "folder", lambda: tmp_path / "starts")
    assert find_start(random_model, OptimiserConfig(), m=1, seconds=0.0).why
    assert not (tmp_path / "starts").exists()


def test_the_record_gives_the_same_again(random_model, monkeypatch) -> None:
    pretend(monkeypatch, lambda scale: int(scale > 50))
    found = choose_start_scale(random_model, OptimiserConfig())
    assert StartScale.of(StartProbe.model_validate_json(found.written().model_dump_json())) == found


def test_the_choice_is_the_same_again(random_model) -> None:
    first, again = (choose_start_scale(random_model, OptimiserConfig()) for _ in range(2))
    assert replace(first, seconds=0.0) == replace(again, seconds=0.0)
