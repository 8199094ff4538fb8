"""Training to copy: interrupted or not it is the same; what cannot be learned from never starts."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from pydantic import ValidationError

from lmreach.config.training import CopyTrainConfig
from lmreach.errors import InputError, ModelError, OutputError
from lmreach.experiments.copying import train as copy_train
from lmreach.experiments.copying.held_out import decoded_matches, exact_matches, held_out, passes
from lmreach.experiments.copying.steps import answer_loss
from lmreach.experiments.copying.tasks import IGNORED, TASKS, CopyTask, check_fit
from lmreach.experiments.copying.train import train
from lmreach.models.copiers import COPIERS, load_copier
from lmreach.models.load import load

TINY: dict[str, Any] = {
    "width": 16,
    "layers": 1,
    "heads": 2,
    "state": 8,
    "alphabet": 4,
    "longest": 4,
    "pack": 32,
    "batch": 4,
    "warmup": 5,
    "max_steps": 20,
    "test_every": 10,
    "test_strings": 16,
    "device": "cpu",
}
EASY = {**TINY, "alphabet": 3, "longest": 2, "pack": 16, "batch": 16, "lr": 0.01, "test_strings": 400}
EASY |= {"max_steps": 600}


def after(steps: int) -> Callable[[], bool]:
    """Return a `stop` that says yes after so many steps."""
    left = [steps]

    def stop() -> bool:
        left[0] -= 1
        return left[0] <= 0

    return stop


@pytest.mark.parametrize("kind", COPIERS)
def test_going_on_is_as_if_never_interrupted(kind: str, tmp_path: Path) -> None:
    config = CopyTrainConfig(kind=kind, **TINY)
    whole = train(config, tmp_path / "whole")
    first = train(config, tmp_path / "parts", stop=after(7))
    assert first.stopped
    assert (first.steps, first.folder) == (7, None)
    rest = train(config, tmp_path / "parts")
    assert (whole.steps, rest.steps, rest.stopped) == (20, 20, False)
    for a, b in zip(whole.model.model.parameters(), rest.model.model.parameters(), strict=True):
        assert torch.equal(a, b)
    curves = [[{k: v for k, v in p.items() if k != "seconds"} for p in r.curve] for r in (whole, rest)]
    assert curves[0] == curves[1]
    assert [p["step"] for p in whole.curve] == [10, 20]
    assert rest.seconds >= first.seconds


@pytest.mark.parametrize(
    "changes", [{"optimiser": "muon"}, {"precision": "bf16"}, {"fine_tune": "builtin:random"}]
)
def test_other_ways_of_training_go_on_as_well(changes: dict[str, Any], tmp_path: Path) -> None:
    config = CopyTrainConfig(**{**TINY, "max_steps": 6, "test_every": 2, **changes})
    whole = train(config, tmp_path / "whole")
    train(config, tmp_path / "parts", stop=after(3))
    rest = train(config, tmp_path / "parts")
    assert rest.model.facts.fingerprint == whole.model.facts.fingerprint
    assert [p["loss"] for p in rest.curve] == [p["loss"] for p in whole.curve]


def test_it_learns_and_stops_at_the_mark(tmp_path: Path) -> None:
    done = train(CopyTrainConfig(**EASY), tmp_path)
    assert done.reached
    assert done.steps < 600
    last = done.curve[-1]
    assert (last["exact"], last["strings"]) == (1.0, 400)
    assert last["loss"] < done.curve[0]["loss"]
    # It is the trained model that was saved, and that comes back without more training.
    assert done.folder is not None
    kept = load_copier(done.folder)
    for a, b in zip(kept.parameters(), done.model.model.parameters(), strict=True):
        assert torch.equal(a, b)
    again = train(CopyTrainConfig(**EASY), tmp_path)
    assert (again.steps, again.reached, again.curve) == (done.steps, True, done.curve)
    assert again.model.facts.fingerprint == done.model.facts.fingerprint
    assert load(done.folder).facts.fingerprint == done.model.facts.fingerprint
    written = json.loads((tmp_path / "training.json").read_text())
    assert written["curve"] == done.curve


def test_one_pass_and_decoding_agree_on_exact_matches(tmp_path: Path) -> None:
    """Half trained, so that some strings are right and some are wrong."""
    config = CopyTrainConfig(**{**EASY, "max_steps": 30, "test_every": 30})
    half = train(config, tmp_path)
    questions = held_out(half.task, config)
    by_pass = exact_matches(half.model.model, questions, torch.device("cpu"))
    by_steps = decoded_matches(half.model, questions)
    assert 0 < by_pass.sum() < len(by_pass)
    assert (by_pass == by_steps).all()


def test_loss_of_perfect_logits_is_nothing(rng: np.random.Generator) -> None:
    """S14 and B25: a second shift of the labels would make this about ln 26 times the scale."""
    task = CopyTask()
    ids, labels = (torch.from_numpy(a) for a in task.batch(rng, 8, 64, 1, 16))
    logits = torch.zeros(8, 64, 30)
    following = torch.cat([ids[:, 1:], torch.zeros(8, 1, dtype=torch.long)], dim=1)
    logits.scatter_(2, following[:, :, None], 30.0)
    assert float(answer_loss(logits, labels)) < 1e-3
    shifted = torch.roll(logits, 1, dims=1)
    assert float(answer_loss(shifted, labels)) > 10


def test_the_loss_is_a_mean_over_scored_labels(rng: np.random.Generator) -> None:
    """B25: a row without a target beside one with two changes nothing."""
    logits = torch.from_numpy(rng.standard_normal((2, 6, 30)))
    labels = torch.full((2, 6), IGNORED)
    labels[0, 3], labels[0, 4] = 7, 28
    terms = [-torch.log_softmax(logits[0, k - 1], dim=0)[labels[0, k]] for k in (3, 4)]
    assert float(answer_loss(logits, labels)) == pytest.approx(float(sum(terms) / 2), rel=1e-5)
    with pytest.raises(InputError, match="0 of 1 samples keep a target"):
        answer_loss(logits[1:], labels[1:])


def test_a_loss_that_is_no_number_stops_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real, calls = copy_train.answer_loss, [0]

    def broken(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        calls[0] += 1
        return real(logits, labels) * (float("nan") if calls[0] == 4 else 1.0)

    monkeypatch.setattr(copy_train, "answer_loss", broken)
    with pytest.raises(ModelError, match="finite loss; got nan at step 4; use a smaller learning rate"):
        train(CopyTrainConfig(**TINY), tmp_path)


def test_what_does_not_fit_never_starts(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"strings of 20 letters \(copy\); got a context of 16"):
        train(CopyTrainConfig(**{**TINY, "longest": 20, "pack": 16}), tmp_path)
    with pytest.raises(InputError, match=r"at least 4 letters for suffix_ngram.*shortest = 1"):
        train(CopyTrainConfig(**TINY, task="suffix_ngram"), tmp_path)
    with pytest.raises(InputError, match="letters from a to d; got 'a-p'"):
        train(CopyTrainConfig(**TINY, letters="a-p"), tmp_path)
    with pytest.raises(ValidationError, match="--train-shortest 5 above --train-longest 4"):
        CopyTrainConfig(**TINY, shortest=5)
    assert not list(tmp_path.iterdir())


def test_a_checkpoint_of_other_settings_is_refused(tmp_path: Path) -> None:
    train(CopyTrainConfig(**TINY), tmp_path, stop=after(2))
    with pytest.raises(OutputError, match=r"of the same settings; got .* with seed=0;"):
        train(CopyTrainConfig(**TINY, seed=1), tmp_path)
    (tmp_path / "checkpoint.pt").write_bytes(b"nothing")
    with pytest.raises(OutputError, match=r"a checkpoint in checkpoint.pt"):
        train(CopyTrainConfig(**TINY), tmp_path)


def test_the_mark_needs_enough_strings() -> None:
    assert passes(368, 368, 0.99)
    assert not passes(367, 367, 0.99)
    assert passes(511, 512, 0.95)
    assert not passes(511, 512, 0.99)


@pytest.mark.parametrize("resize", [False, True])
def test_fine_tuning_reads_letters_as_the_model_spells_them(resize: bool, tmp_path: Path) -> None:
    config = CopyTrainConfig(
        **{**TINY, "max_steps": 4, "alphabet": 26, "lr": 3e-3}, fine_tune="builtin:verse", resize=resize
    )
    done = train(config, tmp_path)
    ids = done.task.ids
    assert ids is not None
    spelled = [done.model.text([i]).strip() for i in ids[:26]]
    letters = [chr(ord("a") + k) for k in range(26)]
    assert spelled == ([f"<copy-{c}>" for c in letters] if resize else letters)
    assert done.model.facts.rows == (542 if resize else 512)
    assert len(set(ids)) == 30
    assert done.folder is not None
    assert load(done.folder).facts.fingerprint == done.model.facts.fingerprint


def test_fine_tuning_a_model_that_is_too_small(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="30 ids; got 6 of tiny"):
        train(CopyTrainConfig(**{**TINY, "alphabet": 26}, fine_tune="tiny:llama,vocab=8"), tmp_path)
    with pytest.raises(InputError, match=r"at most 512 positions.*got 600"):
        train(CopyTrainConfig(**{**TINY, "pack": 600}, fine_tune="builtin:random"), tmp_path)


def test_presets() -> None:
    for name, longest in (("quick", 16), ("paper", 50)):
        for kind in COPIERS:
            config = CopyTrainConfig.preset(name, kind, seed=3)
            assert (config.kind, config.longest, config.alphabet, config.seed) == (kind, longest, 26, 3)
            assert config.context >= 2 * 20 * longest + 3
            assert passes(config.test_strings, config.test_strings, config.mark)


def test_a_preset_follows_task_and_length() -> None:
    for task in TASKS:
        for longest in (16, 70):
            config = CopyTrainConfig.preset("quick", "nope", task=task, longest=longest)
            plain = CopyTask(task)
            assert config.shortest == plain.least
            check_fit(plain, longest, config.pack)


def test_half_precision_on_a_cpu_is_refused(tmp_path) -> None:
    """It would train in float32 there, and the record would say fp16."""
    config = CopyTrainConfig(precision="fp16", device="cpu")
    with pytest.raises(InputError, match=r"precision no or bf16 on a CPU; got --precision fp16"):
        train(config, tmp_path / "a")
