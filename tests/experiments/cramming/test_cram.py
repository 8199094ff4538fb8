"""Cramming: what counts as reached, and that rows of a batch do nothing to each other."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from lmreach.config import OptimiserConfig
from lmreach.errors import InputError
from lmreach.experiments.cramming import cram as engine
from lmreach.experiments.cramming.cram import CramResult, cram
from lmreach.experiments.targets.draw import draw
from lmreach.models.decode import emitted_prefix, greedy
from lmreach.models.fingerprint import fingerprint
from lmreach.models.frame import frame_of
from lmreach.models.load import load
from lmreach.models.search_copy import twin
from lmreach.models.stopping import PassStopped, stoppable
from lmreach.models.tiny import FAMILIES, tiny, tiny_tokenizer
from tests.experiments.cramming.company import equal, far_apart, outcomes, walk
from tests.runs.stopping import After

QUICK = OptimiserConfig(max_steps=60, patience=40)


def generators(count: int) -> list[np.random.Generator]:
    return [np.random.default_rng(i) for i in range(count)]


def run(model, ids, m=1, config=QUICK, batch_size=8, **more) -> list[CramResult]:
    return cram(model, ids, m, config, generators=generators(len(ids)), batch_size=batch_size, **more)


def test_a_reach_is_what_greedy_decoding_emits_from_the_stored_vectors_alone(random_model) -> None:
    ids = draw(random_model, "self", 8, 24, seed=0).ids
    found = run(random_model, ids, m=2)
    assert max(one.reach for one in found) >= 4
    for one, target in zip(found, ids, strict=True):
        decoded = greedy(random_model, torch.from_numpy(one.vectors), len(target))
        hits = decoded.ids.numpy() == target if hasattr(decoded.ids, "numpy") else decoded.ids == target
        assert one.reach == int(np.cumprod(hits).sum())


def test_the_first_token_is_scored(random_model) -> None:
    """With one target id there is no other token: a reach of 1 can only come from the vectors."""
    ids = draw(random_model, "random", 8, 1, seed=3).ids
    found = run(random_model, ids)
    assert [one.outcome for one in found] == ["hit_limit"] * 8
    for one, target in zip(found, ids, strict=True):
        logits = random_model.logits(torch.from_numpy(one.vectors)[None])[0, -1]
        assert int(logits.argmax()) == target[0]


def test_company_changes_nothing_but_the_rounding(random_model) -> None:
    ids = draw(random_model, "self", 6, 16, seed=1).ids
    together = walk(random_model, ids, list(range(6)), m=1, config=QUICK)
    for i in range(6):
        alone = walk(random_model, ids, [i], m=1, config=QUICK)
        torch.testing.assert_close(alone[0], together[i], rtol=1e-3, atol=1e-3)


def test_the_same_call_gives_the_same_to_the_bit_and_other_company_another_draw(random_model) -> None:
    ids, everyone = draw(random_model, "self", 12, 16, seed=1).ids, list(range(12))
    together, again, queued = (
        outcomes(random_model, ids, everyone, m=1, config=QUICK, batch=batch) for batch in (12, 12, 5)
    )
    assert equal(together, again)
    assert not far_apart(together, queued)


def test_a_string_computed_alone_is_the_same_whatever_else_is_asked_for(random_model) -> None:
    """With one row at a time there is no company: part of the strings, in any order, gives the same."""
    ids = draw(random_model, "random", 6, 16, seed=1).ids
    all_six = outcomes(random_model, ids, list(range(6)), m=1, config=QUICK, batch=1)
    some = outcomes(random_model, ids, [4, 1], m=1, config=QUICK, batch=1)
    assert equal(some, [all_six[4], all_six[1]])


@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_rows_are_independent_in_every_family(family: str) -> None:
    """Gradients of a row do not depend on the rows beside it or on right padding: 5 steps agree to 1e-4."""
    model = load(tiny(family))
    ids = draw(model, "random", 3, 6, seed=0).ids
    config = OptimiserConfig(max_steps=5, patience=5, lr=0.1, lr_end=0.1, protocol="fixed")
    together = run(model, ids, m=2, config=config)
    for i in range(3):
        alone = cram(model, ids[i : i + 1], 2, config, generators=[np.random.default_rng(i)], batch_size=1)[0]
        assert alone.reach == together[i].reach
        np.testing.assert_allclose(alone.vectors, together[i].vectors, rtol=1e-3, atol=1e-4)


def test_frontier_reaches_every_shorter_target_too(random_model) -> None:
    """A vector that emits n tokens emits every shorter prefix: one run gives the whole curve."""
    ids = draw(random_model, "self", 4, 24, seed=2).ids
    for one, target in zip(run(random_model, ids, m=2), ids, strict=True):
        for n in range(1, one.reach + 1):
            emission = emitted_prefix(random_model, torch.from_numpy(one.vectors), target[:n])
            assert emission.reach == n


def test_more_restarts_never_reach_less(random_model) -> None:
    ids = draw(random_model, "random", 24, 12, seed=4).ids
    once = run(random_model, ids)
    thrice = run(random_model, ids, config=QUICK.model_copy(update={"restarts": 3}))
    assert all(b.reach >= a.reach for a, b in zip(once, thrice, strict=True))
    assert any(b.reach > a.reach for a, b in zip(once, thrice, strict=True))
    assert all(b.steps > a.steps for a, b in zip(once, thrice, strict=True))


def test_growing_says_whose_steps_ended_too_early(random_model) -> None:
    """Rows cut off in their first steps still grow; those done with their target, or given up, do not."""
    ids = draw(random_model, "random", 32, 12, seed=4).ids
    short = run(random_model, ids, config=QUICK.model_copy(update={"max_steps": 20, "lr_end": 0.5}))
    assert 0 < sum(one.growing for one in short) < 32
    assert all(one.outcome == "spent" for one in short if one.growing)
    easy = run(random_model, ids[:, :2])
    assert all(one.outcome == "hit_limit" and not one.growing for one in easy if one.reach == 2)
    idle = run(random_model, ids, config=QUICK.model_copy(update={"max_steps": 2000, "patience": 40}))
    assert not any(one.growing for one in idle)


def test_growth_is_the_same_run_read_at_every_step(random_model) -> None:
    """A run that is cut after k steps has what the whole run had by then, confirmed."""
    ids = draw(random_model, "self", 6, 24, seed=2).ids
    whole = run(random_model, ids, m=2)
    for one in whole:
        steps, prefixes = zip(*one.growth, strict=True)
        assert list(steps) == sorted(set(steps))
        assert list(prefixes) == sorted(set(prefixes))
        assert prefixes[-1] == one.reach
    for k in (1, 30):
        for part, one in zip(run(random_model, ids, m=2, cut=After(k)), whole, strict=True):
            if part.outcome == "hit_limit":
                assert part.steps <= k
                continue
            assert (part.outcome, part.steps) == ("cut", k)
            by_then = [pair for pair in one.growth if pair[0] < k]
            assert part.growth[:-1] == tuple(by_then[:-1])
            # Decoding goes on past what a pass has proposed, at the end alone.
            assert part.reach == (part.growth[-1][1] if part.growth else 0)
            assert part.reach >= (by_then[-1][1] if by_then else 0)


def test_a_step_that_is_given_up_leaves_strings_as_they_were_before_it(random_model) -> None:
    """Asked before each block, forth and back: at each of these the third step is under way."""
    ids = draw(random_model, "self", 4, 24, seed=2).ids
    expected = run(random_model, ids, m=2, cut=After(2))
    questions = 2 * len(random_model.wiring.blocks)
    for after in range(2 * questions, 3 * questions):
        assert equal(run(random_model, ids, m=2, abandon=After(after)), expected)
    assert run(random_model, ids, m=2, abandon=lambda: True) == []


def test_a_limit_around_it_ends_all_of_it(random_model) -> None:
    ids = draw(random_model, "random", 2, 8, seed=0).ids
    with stoppable(After(5)), pytest.raises(PassStopped):
        run(random_model, ids)


def test_a_cut_before_the_first_step_claims_nothing(random_model) -> None:
    ids = draw(random_model, "random", 3, 8, seed=0).ids
    assert run(random_model, ids, cut=lambda: True) == []


def test_a_cut_between_two_starts_keeps_the_better(random_model) -> None:
    """Strings that wait for their second start end as their first one left them."""
    ids = draw(random_model, "random", 6, 12, seed=4).ids
    once = run(random_model, ids, batch_size=3)
    twice = QUICK.model_copy(update={"restarts": 2})
    steps = max(one.steps for one in once)
    found = run(random_model, ids, config=twice, batch_size=3, cut=After(steps + 5))
    assert {one.index for one in found} >= {0, 1, 2}
    for one in found[:3]:
        assert one.reach >= once[one.index].reach
        assert one.outcome in ("cut", "hit_limit")


def test_each_step_is_reported(random_model) -> None:
    ids = draw(random_model, "self", 4, 24, seed=2).ids
    seen = []
    found = run(random_model, ids, m=2, on_step=seen.append)
    assert [one.steps for one in seen] == list(range(1, len(seen) + 1))
    assert seen[0].rows == 4
    assert seen[-1].prefixes == tuple(one.proposed for one in found)
    assert all(a.positions > 0 for a in seen)


def test_weights_stay_frozen(random_model) -> None:
    before = fingerprint(random_model.model)
    run(random_model, draw(random_model, "random", 2, 6, seed=0).ids)
    assert fingerprint(random_model.model) == before
    assert all(weight.grad is None for weight in random_model.model.parameters())
    assert not random_model.model.training


def test_stop_returns_what_is_finished(random_model) -> None:
    ids = draw(random_model, "random", 6, 8, seed=0).ids
    seen: list[int] = []
    found = run(
        random_model,
        ids,
        batch_size=2,
        on_result=lambda one: seen.append(one.index),
        stop=lambda: len(seen) >= 2,
    )
    assert sorted(seen) == [one.index for one in found]
    assert 2 <= len(found) < 6


def test_a_nan_ends_one_string_and_no_other(random_model, monkeypatch: pytest.MonkeyPatch) -> None:
    """A start that overflows is an outcome of that string; the rest of the batch goes on."""
    ids = draw(random_model, "random", 3, 4, seed=0).ids
    # Alone: with two rows instead of three the rounding would be another.
    clean = run(random_model, ids, batch_size=1)
    table = random_model.input_vectors

    class Poisoned(np.random.Generator):
        def choice(self, pool, size):
            return np.full(size, -1)

    def vectors(ids):
        found = table(ids.clamp(min=0))
        found[ids < 0] = 1e30  # finite, but its square is not
        return found

    monkeypatch.setattr(type(random_model), "input_vectors", lambda _self, ids: vectors(ids))
    some = generators(3)
    some[1] = Poisoned(np.random.PCG64(0))
    together = cram(random_model, ids, 1, QUICK, generators=some, batch_size=3)
    assert [one.outcome == "non_finite" for one in together] == [False, True, False]
    assert all(together[i].reach > 0 for i in (0, 2))
    some = generators(3)
    some[1] = Poisoned(np.random.PCG64(0))
    found = cram(random_model, ids, 1, QUICK, generators=some, batch_size=1)
    assert found[1].outcome == "non_finite"
    assert found[1].reach == 0
    assert [found[i].reach for i in (0, 2)] == [clean[i].reach for i in (0, 2)]


def test_start_token_stands_where_asked() -> None:
    """0, 1 and 1 start tokens in the input, and never in the target."""
    model = load(tiny("llama", vocab_size=64, bos_token_id=1))
    ids = draw(model, "random", 2, 4, seed=0).ids
    reaches = {}
    for bos in ("none", "before", "after"):
        config = OptimiserConfig(max_steps=80, patience=80, bos=bos)
        found = run(model, ids, config=config)
        reaches[bos] = [one.reach for one in found]
        for one, target in zip(found, ids, strict=True):
            again = emitted_prefix(model, torch.from_numpy(one.vectors), target, frame=frame_of(model, bos))
            assert again.reach == one.reach
    assert max(max(values) for values in reaches.values()) > 0


@pytest.mark.parametrize(
    ("m", "n", "words"),
    [(0, 4, "at least 1"), (1, 0, "at least 1"), (500, 13, "512"), (513, 1, "512")],
)
def test_lengths_out_of_range_are_refused_before_the_first_step(
    random_model, m: int, n: int, words: str
) -> None:
    with pytest.raises(InputError, match=words):
        run(random_model, np.zeros((1, n), dtype=np.int64), m=m)


def test_a_start_token_that_is_not_there_is_refused(random_model) -> None:
    with pytest.raises(InputError, match="start token"):
        run(random_model, np.zeros((1, 2), dtype=np.int64), config=OptimiserConfig(bos="before"))


def test_texts_around_the_vectors_stay_and_count(speaking) -> None:
    """The vectors are confirmed with the texts in place, and without them they emit something else."""
    ids = draw(speaking, "random", 4, 6, seed=0).ids
    config = OptimiserConfig(max_steps=120, patience=120, prefix="the sea", suffix="is calm")
    found = run(speaking, ids, config=config)
    frame = frame_of(speaking, "none", "the sea", "is calm")
    assert max(one.reach for one in found) > 0
    kept = []
    for one, target in zip(found, ids, strict=True):
        vectors = torch.from_numpy(one.vectors)
        assert emitted_prefix(speaking, vectors, target, frame=frame).reach == one.reach
        kept.append(emitted_prefix(speaking, vectors, target).reach == one.reach)
    assert not all(kept)


def test_texts_count_against_the_context(speaking) -> None:
    room = speaking.facts.context - 2
    config = OptimiserConfig(prefix="the sea is calm tonight " * 4)
    with pytest.raises(InputError, match="context"):
        run(speaking, np.zeros((1, room), dtype=np.int64), config=config)


@pytest.fixture(scope="module")
def speaking():
    return load(tiny("llama", vocab_size=128), tokenizer=tiny_tokenizer(100))


def test_a_search_on_a_rougher_copy_claims_only_what_the_model_itself_emits(random_model) -> None:
    ids = draw(random_model, "self", 6, 24, seed=0).ids
    found = run(random_model, ids, m=2, search=twin(random_model, torch.bfloat16))
    assert max(one.reach for one in found) >= 4
    for one, target in zip(found, ids, strict=True):
        emission = emitted_prefix(random_model, torch.from_numpy(one.vectors), target)
        assert one.reach == emission.reach
        # What the copy did not see may come out all the same, never the other way round.
        assert one.proposed <= emission.reach


def test_a_search_on_an_equal_copy_changes_nothing(random_model) -> None:
    """The check in the model's dtype agrees with the pass itself: same reaches, same steps."""
    ids = draw(random_model, "random", 6, 24, seed=0).ids
    alone, checked = (run(random_model, ids, search=one) for one in (None, twin(random_model, torch.float32)))
    for a, b in zip(alone, checked, strict=True):
        assert (a.reach, a.steps, a.outcome) == (b.reach, b.steps, b.outcome)


def test_longer_starts_are_longer(random_model) -> None:
    ids = draw(random_model, "random", 2, 6, seed=0).ids
    config = QUICK.model_copy(update={"max_steps": 1, "patience": 1})
    plain, long = (
        run(random_model, ids, config=config.model_copy(update={"start_scale": scale}))
        for scale in (1.0, 50.0)
    )
    for a, b in zip(plain, long, strict=True):
        np.testing.assert_allclose(b.vectors, 50 * a.vectors, rtol=1e-5)


def test_one_sound_start_is_enough() -> None:
    """A string fails only if no start of its stays a number."""
    broken = CramResult(0, 0, "non_finite", None, None, None, 0, 5)
    sound = CramResult(0, 0, "spent", None, None, None, 0, 60)
    assert engine._better(broken, sound).outcome == engine._better(sound, broken).outcome == "spent"
    assert engine._better(replace(broken, reach=3), sound).reach == 3
    assert engine._better(broken, broken).outcome == "non_finite"


def test_gradient_checkpointing_leaves_the_vectors_their_gradient() -> None:
    """With frozen first layers it could remove them all; then nothing would ever move."""
    ends = []
    for checkpointing in (False, True):
        inner = tiny("llama")
        if checkpointing:
            inner.gradient_checkpointing_enable()
        model = load(inner)
        ids = draw(model, "random", 2, 5, seed=0).ids
        ends.append(
            run(model, ids, config=OptimiserConfig(max_steps=5, patience=5, lr=0.1, protocol="fixed"))
        )
    for a, b in zip(*ends, strict=True):
        np.testing.assert_allclose(a.vectors, b.vectors, rtol=1e-4, atol=1e-5)
