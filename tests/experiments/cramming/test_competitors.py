"""Scoring against a row's competitors alone, beside scoring against everything."""

from contextlib import ExitStack
from unittest.mock import patch

import numpy as np
import pytest
import torch

from lmreach.config import OptimiserConfig
from lmreach.experiments.cramming import cram as engine
from lmreach.experiments.cramming.competitors import EVERY, FROM_ROWS, Competitors, score_among
from lmreach.experiments.cramming.scoring import score
from lmreach.experiments.targets.draw import draw
from lmreach.models.decode import emitted_prefix
from lmreach.models.load import load
from lmreach.models.search_copy import twin
from lmreach.models.tiny import tiny
from tests.experiments.cramming.company import equal, far_apart, outcomes, walk

QUICK = OptimiserConfig(max_steps=60, start_scale=1.0)
FAMILIES = ["llama", "gemma2", "phi"]  # plain, soft cap, bias


def case(family: str):
    model = load(tiny(family))
    generator = torch.Generator().manual_seed(3)
    hidden = 3 * torch.randn(3, 5, model.facts.hidden_width, generator=generator)
    ids = model.head_logits(hidden).argmax(-1)
    ids[0, 2] = (ids[0, 2] + 1) % model.facts.rows
    ids[1, 0] = (ids[1, 0] + 7) % model.facts.rows
    scored = torch.arange(5) < torch.tensor([[5], [4], [1]])
    return model, hidden, ids, scored


@pytest.mark.parametrize("family", FAMILIES)
def test_with_all_ids_as_competitors_nothing_changes(family: str) -> None:
    model, hidden, ids, scored = case(family)
    weights = torch.tensor([6.0, 2.0, 1.0])
    everything = torch.arange(model.facts.rows).expand(3, -1)
    plain = score(model, hidden, ids, scored, unsolved=weights, slack=0.01)
    with patch("lmreach.experiments.cramming.competitors._GATHERED", 2 * everything[:2].numel()):
        among = score_among(model, hidden, ids, scored, everything, unsolved=weights, slack=0.01)
    torch.testing.assert_close(among.loss, plain.loss, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(among.hidden_grad, plain.hidden_grad, rtol=1e-4, atol=1e-6)
    for name in ("prefix", "near", "hits"):
        assert getattr(among, name).tolist() == getattr(plain, name).tolist()


@pytest.mark.parametrize("family", FAMILIES)
def test_logits_of_a_few_ids_are_those_among_all(family: str) -> None:
    model, hidden, _, _ = case(family)
    few = torch.tensor([[1, 5, 9], [0, 2, 4], [7, 7, 3]])
    expected = model.head_logits(hidden).gather(2, few[:, None].expand(-1, 5, -1))
    torch.testing.assert_close(model.logits_of(hidden, few), expected, rtol=1e-4, atol=1e-5)


def test_fewer_competitors_never_hide_a_hit_and_never_raise_the_loss() -> None:
    """What is left out can only make a target look better: so nothing that has grown is missed."""
    model, hidden, ids, scored = case("llama")
    plain = score(model, hidden, ids, scored)
    for seed in range(20):
        some = torch.from_numpy(np.random.default_rng(seed).choice(model.facts.rows, size=(3, 16)))
        few = score_among(model, hidden, ids, scored, some, unsolved=torch.ones(3))
        assert bool((few.loss <= plain.loss + 1e-5).all())
        assert bool((few.prefix >= plain.prefix).all())


def test_the_mass_is_the_gradient_at_the_logits() -> None:
    model, hidden, ids, scored = case("llama")
    mass = torch.zeros(3, model.facts.rows)
    score(model, hidden, ids, scored, mass=mass)
    shares = model.head_logits(hidden).softmax(-1)
    shares -= torch.nn.functional.one_hot(ids, model.facts.rows)
    expected = (shares * scored[..., None] / scored.sum(1)[:, None, None]).sum(1)
    torch.testing.assert_close(mass, expected, rtol=1e-4, atol=1e-6)


def test_rows_are_due_when_new_doubted_or_every_few_steps() -> None:
    kept = Competitors()
    index = torch.tensor([4, 9])
    assert kept.needs_full_pass(index, torch.tensor([1, 1])).tolist() == [True, True]
    kept.update(index, torch.rand(2, 30))
    assert kept.needs_full_pass(index, torch.tensor([EVERY + 1, 2 * EVERY])).tolist() == [False, True]
    kept.distrust(index[:1])
    assert kept.needs_full_pass(index, torch.tensor([EVERY + 1, EVERY + 1])).tolist() == [True, False]
    kept.update(index, torch.rand(2, 30))
    assert kept.needs_full_pass(index, torch.tensor([EVERY + 1, EVERY + 1])).tolist() == [False, False]


def test_a_row_takes_the_same_steps_whatever_shares_its_batch() -> None:
    """Competitors are the string's own: over three full looks and the steps between."""
    model = load("builtin:random")
    ids = draw(model, "random", 8, 12, seed=2).ids
    with few_competitors():
        together, alone = (
            torch.cat([walk(model, ids, index, m=2, config=QUICK) for index in parts])
            for parts in ([list(range(8))], [[i] for i in range(8)])
        )
        backwards = walk(model, ids, list(range(8))[::-1], m=2, config=QUICK).flip(0)
    assert not torch.allclose(together[:, -1], together[:, 0], rtol=0.1), "the rows have moved"
    torch.testing.assert_close(alone, together, rtol=1e-3, atol=1e-3)
    torch.testing.assert_close(backwards, together, rtol=1e-3, atol=1e-3)


def test_what_the_engine_claims_has_been_seen_in_all_logits() -> None:
    """The same call gives the same; other company only draws again; an eighth of the ids will do."""
    model, everyone = load("builtin:random"), list(range(8))
    ids = draw(model, "random", 8, 12, seed=2).ids
    with few_competitors():
        first, again = (outcomes(model, ids, everyone, m=2, config=QUICK, batch=8) for _ in range(2))
        alone = outcomes(model, ids, everyone, m=2, config=QUICK, batch=1)
    assert equal(first, again)
    assert not far_apart(first, alone)
    plain = outcomes(model, ids, everyone, m=2, config=QUICK, batch=8)
    assert not far_apart(first, plain)


def few_competitors():
    """Let the small model be scored as one with a large vocabulary is."""
    patched = ExitStack()
    patched.enter_context(patch.object(engine, "FROM_ROWS", 1))
    patched.enter_context(patch("lmreach.experiments.cramming.competitors.KEPT", 64))
    return patched


def sixteen_bit_searches():
    """A 16-bit model scored against competitors, and one whose steps are taken on a copy."""
    half = twin(load("builtin:random"), torch.bfloat16)
    return [(half, None, 1), (half, twin(half, torch.float32), FROM_ROWS)]


@pytest.mark.parametrize("way", [0, 1], ids=["competitors", "search copy"])
def test_on_a_16_bit_model_what_is_stored_is_what_was_seen_to_lead(way: int) -> None:
    """Ties are common there. When they counted, 15 of these strings ended at less than had been shown."""
    model, search, rows = sixteen_bit_searches()[way]
    ids = draw(model, "random", 16, 24, seed=5).ids
    starts = [np.random.default_rng(i) for i in range(16)]
    with few_competitors(), patch.object(engine, "FROM_ROWS", rows):
        config = OptimiserConfig(max_steps=80, start_scale=1.0)
        found = engine.cram(model, ids, 4, config, generators=starts, batch_size=16, search=search)
    assert all(one.dtype == torch.bfloat16 for one in model.model.parameters())
    assert max(one.reach for one in found) >= 5
    for one, target in zip(found, ids, strict=True):
        emission = emitted_prefix(model, torch.from_numpy(one.vectors), target)
        assert (one.reach, one.smallest_gap) == (emission.reach, emission.smallest_gap)
        assert one.reach >= one.proposed


@pytest.mark.parametrize("way", [0, 1], ids=["competitors", "search copy"])
def test_a_tied_iterate_never_takes_the_place_of_one_that_leads(way: int) -> None:
    """The third id has a twin with the same row: the first two may come out, and their vectors stay."""
    inner = tiny("llama", tie_word_embeddings=False)
    with torch.no_grad():
        inner.lm_head.weight[9] = inner.lm_head.weight[5]
    model = twin(load(inner), torch.bfloat16)
    search = (None, twin(model, torch.float32))[way]
    ids = draw(model, "random", 8, 4, seed=1).ids
    ids[np.isin(ids, [5, 9])] = 6
    ids[:, 2] = 5
    starts = [np.random.default_rng(i) for i in range(8)]
    with patch.object(engine, "FROM_ROWS", (1, FROM_ROWS)[way]):
        config = OptimiserConfig(max_steps=60, start_scale=1.0)
        found = engine.cram(model, ids, 2, config, generators=starts, batch_size=8, search=search)
    assert [one.reach for one in found] == [2] * 8
    assert [one.proposed for one in found] == [2] * 8
