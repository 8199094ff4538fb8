"""Measuring copies: batches against single strings, teacher-forced against free-running, and the guards."""

from dataclasses import dataclass, field

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lmreach.errors import InputError, ModelError
from lmreach.experiments.copying.attention import source_attention
from lmreach.experiments.copying.measure import answers, characters_interval, check_room, measure, recheck
from lmreach.experiments.copying.prompts import Asker, Laid, Pair, draw
from lmreach.models.decode import Steps
from lmreach.models.load import load
from lmreach.models.loaded import LoadedModel
from lmreach.models.tiny import tiny

LETTERS = np.arange(4, 14)


@dataclass(frozen=True)
class Plain:
    """``start string separator`` -> ``string end``, in the first ids of any model."""

    symbols: np.ndarray = field(default_factory=lambda: LETTERS)

    def example(self, rng: np.random.Generator, length: int) -> Pair:
        string = rng.choice(self.symbols, size=length)
        return np.concatenate([[0], string, [1]]), np.append(string, 2)


@dataclass(frozen=True)
class Emitting:
    """An asker whose right answers are what a model emits: it is a perfect copier by definition."""

    model: LoadedModel
    symbols: np.ndarray = field(default_factory=lambda: LETTERS)

    def example(self, rng: np.random.Generator, length: int) -> Pair:
        prompt, answer = Plain().example(rng, length)
        return prompt, recomputed(self.model, prompt, len(answer))


def recomputed(model: LoadedModel, prompt: np.ndarray, n: int) -> np.ndarray:
    """Greedy decoding in five lines: batch 1, the whole sequence again at every step."""
    ids = prompt.tolist()
    for _ in range(n):
        with torch.no_grad():
            logits = model.model(input_ids=torch.tensor([ids]), use_cache=False).logits[0, -1]
        ids.append(int(logits.argmax()))
    return np.asarray(ids[len(prompt) :])


@pytest.fixture(scope="module", params=["llama", "gemma3_text", "mamba"])
def model(request: pytest.FixtureRequest) -> LoadedModel:
    return load(
        tiny(request.param, max_position_embeddings=128) if request.param != "mamba" else tiny("mamba")
    )


def test_a_batch_gives_what_single_strings_give(model: LoadedModel) -> None:
    # Prompts of two sizes, longer than the sliding window of 8.
    pairs = [*draw(Plain(), 12, 5, seed=0), *draw(Plain(), 9, 3, seed=0)]
    for (prompt, answer), ids in zip(pairs, answers(model, pairs), strict=True):
        assert ids.tolist() == recomputed(model, prompt, len(answer)).tolist()
    assert recheck(model, Plain(), 12, 5) == 5


def test_answers_of_several_lengths_share_a_batch(model: LoadedModel) -> None:
    (prompt, answer), (other, whole) = draw(Plain(), 10, 2, seed=0)
    for decoding in ("free_running", "teacher_forced"):
        mixed = answers(model, [(prompt, answer[:3]), (other, whole)], decoding)
        alone = [
            answers(model, [(prompt, answer[:3])], decoding)[0],
            answers(model, [(other, whole)], decoding)[0],
        ]
        assert [ids.tolist() for ids in mixed] == [ids.tolist() for ids in alone]


def test_long_batches_are_cut(model: LoadedModel, monkeypatch: pytest.MonkeyPatch) -> None:
    pairs = draw(Plain(), 6, 7, seed=0)
    whole = answers(model, pairs), answers(model, pairs, "teacher_forced")
    monkeypatch.setattr("lmreach.experiments.copying.measure._POSITIONS", 30)
    monkeypatch.setattr("lmreach.experiments.copying.measure._LOGITS", 64 * 2 * 3)
    cut = answers(model, pairs), answers(model, pairs, "teacher_forced")
    assert [[i.tolist() for i in one] for one in whole] == [[i.tolist() for i in one] for one in cut]


def test_a_model_that_emits_the_answer_is_exact(model: LoadedModel) -> None:
    for decoding in ("free_running", "teacher_forced"):
        score = measure(model, Emitting(model), 7, 6, decoding=decoding)
        assert (score.exact, score.complete, score.right) == (6, 6, (7,) * 6)
        assert score.record("plain").characters.share == 1.0
        assert score.mistakes == ()


def test_teacher_forced_has_the_same_first_mistakes_and_exact_matches(model: LoadedModel) -> None:
    class Nearly(Emitting):
        def example(self, rng: np.random.Generator, length: int) -> Pair:
            prompt, answer = super().example(rng, length)
            if rng.random() < 0.6:
                place = rng.integers(length)
                answer[place] = (answer[place] + 1) % 64
            return prompt, answer

    free = measure(model, Nearly(model), 9, 24)
    forced = measure(model, Nearly(model), 9, 24, decoding="teacher_forced")
    assert forced.wrong == free.wrong
    assert 0 < free.exact < 24
    assert forced.exact == free.exact
    assert forced.record("plain").decoding == "teacher_forced"


def test_strings_do_not_depend_on_layout_or_number(rng: np.random.Generator) -> None:
    laid = Laid("shots", Plain(), before=(3, 3), shots=2, shot_length=4)
    few, many = draw(Plain(), 8, 3, seed=1), draw(laid, 8, 5, seed=1)
    for (prompt, answer), (longer, same) in zip(few, many, strict=False):
        assert answer.tolist() == same.tolist()
        assert longer[-len(prompt) :].tolist() == prompt.tolist()
        assert len(longer) == 2 + 2 * (6 + 5) + len(prompt)


def test_a_length_beyond_the_context_is_refused_before_anything_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    model = load(tiny("llama", max_position_embeddings=64))
    assert check_room(model, Plain(), 30) == 63

    def never(*_: object, **__: object) -> None:
        raise AssertionError("a step was taken")

    monkeypatch.setattr(Steps, "__init__", never)
    with pytest.raises(InputError, match=r"64 positions.* got 33 \+ 32 = 65 for strings of 31"):
        measure(model, Plain(), 31, 2)


def test_training_mode_and_no_strings_are_refused() -> None:
    model = load(tiny("llama"))
    with pytest.raises(InputError, match="at least 1 string"):
        measure(model, Plain(), 3, 0)
    with pytest.raises(InputError, match="at least 1 character"):
        measure(model, Plain(), 0, 1)
    model.model.train()
    with pytest.raises(ModelError, match="eval mode"):
        measure(model, Plain(), 3, 1)


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20)), min_size=1, max_size=30))
def test_the_characters_interval_holds_the_share_and_is_no_narrower_than_independence(
    pairs: list[tuple[int, int]],
) -> None:
    right, of = tuple(min(p) for p in pairs), tuple(max(*p, 1) for p in pairs)
    found = characters_interval(right, of)
    assert 0 <= found.low <= found.share <= found.high <= 1
    assert len(of) - 1e-9 <= found.effective <= sum(of) + 1e-9


def test_characters_of_one_string_are_not_counted_as_independent() -> None:
    together = characters_interval((10, 10, 0, 0) * 5, (10,) * 20)
    apart = characters_interval((5,) * 20, (10,) * 20)
    assert together.share == apart.share == 0.5
    assert together.effective == pytest.approx(20, rel=0.06)  # whole strings: as many as there are
    assert apart.effective == 200


def test_attention_sees_the_source(rng: np.random.Generator) -> None:
    model, asker = load(tiny("llama")), Plain()
    score = measure(model, asker, 6, 4)
    before = model.model.config._attn_implementation
    found = source_attention(model, asker, 6, score.wrong, strings=3)
    assert found is not None
    assert model.model.config._attn_implementation == before
    prompt, answer = draw(asker, 6, 4, seed=0)[0]
    ids = torch.tensor([[*prompt, *answer[:-2]]])
    model.model.set_attn_implementation("eager")
    weights = model.model(input_ids=ids, output_attentions=True).attentions
    # Character i of the answer is predicted at position 7 + i and stands at 1 + i.
    by_hand = [[sum(float(w[0, h, 7 + i, 1 + i]) for i in range(6)) / 6 for h in range(4)] for w in weights]
    one = source_attention(model, asker, 6, [None], strings=1)
    assert one is not None
    assert one.weight == pytest.approx(max(map(max, by_hand)), rel=1e-4)
    assert by_hand[one.layer][one.head] == pytest.approx(one.weight, rel=1e-4)


def test_a_model_without_attention_has_none() -> None:
    model = load(tiny("mamba"))
    asker: Asker = Plain()
    assert source_attention(model, asker, 5, measure(model, asker, 5, 2).wrong) is None
