"""The published protocol, kept for comparison."""

import numpy as np
import pytest
import torch

from lmreach.config import CramPlan
from lmreach.errors import InputError
from lmreach.experiments.cramming.cram import cram
from lmreach.experiments.cramming.published import PublishedSettings, cram_published
from lmreach.experiments.cramming.start_scale import choose_start_scale
from lmreach.models.search_copy import twin

QUICK = PublishedSettings(lr=0.3, max_steps=150, patience=100)


def generators(count: int) -> list[np.random.Generator]:
    return [np.random.default_rng([7, i]) for i in range(count)]


def targets(strings: int, n: int) -> np.ndarray:
    return np.random.default_rng(3).integers(512, size=(strings, n))


def test_a_string_is_the_same_alone_and_in_a_batch(random_model) -> None:
    """In float64: how float32 rounds depends on the number of rows."""
    ids, exact = targets(3, 4), twin(random_model, torch.float64)
    together = cram_published(exact, ids, 2, QUICK, generators=generators(3))
    for i, one in enumerate(together):
        (alone,) = cram_published(exact, ids[i : i + 1], 2, QUICK, generators=generators(3)[i : i + 1])
        assert (alone.solved, alone.steps) == (one.solved, one.steps)


def test_two_tokens_with_the_first_given_are_solved_and_decoding_agrees(random_model) -> None:
    found = cram_published(random_model, targets(4, 2), 2, QUICK, generators=generators(4))
    assert all(one.solved and one.decoded and one.best == 1 for one in found)


def test_the_optimiser_is_that_of_torch(random_model) -> None:
    """The slow version: one string, the library's own loss on the library's own logits."""
    ids = targets(1, 6)
    settings = PublishedSettings(lr=0.05, max_steps=12, patience=99)
    spread = float(random_model.model.get_input_embeddings().weight.std())
    start = generators(1)[0].standard_normal((2, 64), dtype=np.float32)
    vectors = torch.nn.Parameter(torch.from_numpy(spread * start))
    optimiser = torch.optim.AdamW([vectors], lr=0.05, betas=(0.9, 0.9), weight_decay=0.01)
    wanted = torch.from_numpy(ids[0])
    best = 0
    for _ in range(12):
        inputs = torch.cat([vectors, random_model.input_vectors(wanted[:-1])])[None]
        logits = random_model.model(inputs_embeds=inputs).logits[0, 2:]
        best = max(best, int((logits.argmax(-1) == wanted[1:]).sum()))
        optimiser.zero_grad()
        torch.nn.functional.cross_entropy(logits, wanted[1:]).backward()
        optimiser.step()
    (found,) = cram_published(random_model, ids, 2, settings, generators=generators(1))
    assert (found.best, found.steps) == (best, 12)


def test_lengths_that_make_no_sense_are_refused(random_model) -> None:
    for n in (1, 512):
        with pytest.raises(InputError, match="at least 2"):
            cram_published(random_model, targets(1, n), 2, QUICK, generators=generators(1))


def test_every_end_has_its_name_and_is_told_as_it_comes(random_model) -> None:
    told: dict[int, str] = {}
    found = cram_published(
        random_model,
        targets(4, 6),
        2,
        PublishedSettings(lr=0.3, max_steps=40, patience=8),
        generators=generators(4),
        on_result=lambda i, one: told.setdefault(i, one.outcome),
    )
    assert [told[i] for i in range(4)] == [one.outcome for one in found]
    assert {one.outcome for one in found} <= {"solved", "gave_up", "spent"}
    assert all((one.outcome == "solved") == one.solved for one in found)


def test_what_was_running_when_asked_to_stop_is_not_told(random_model) -> None:
    told: list[int] = []
    found = cram_published(
        random_model,
        targets(2, 30),
        1,
        QUICK,
        generators=generators(2),
        on_result=lambda i, _: told.append(i),
        stop=lambda: True,
    )
    assert [one.outcome for one in found] == ["stopped"] * 2
    assert not told


def test_the_plain_optimiser_refuses_its_settings(random_model) -> None:
    """Its learning rate is absolute and its trials are others: 0.01 of our units would reach nothing."""
    plan = CramPlan(protocol="published")
    with pytest.raises(InputError, match=r"expected an OptimiserConfig; got a CramPlan; pass what its optim"):
        cram(random_model, targets(1, 4), 1, plan, generators=generators(1), batch_size=1)
    with pytest.raises(InputError, match="an OptimiserConfig"):
        choose_start_scale(random_model, plan)
    with pytest.raises(InputError, match="protocol frontier or fixed; got published"):
        plan.optimiser(1.0)
