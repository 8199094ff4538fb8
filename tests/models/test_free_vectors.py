"""Vectors that belong to no token: handed in unchanged, measured as the model measures them, or refused."""

import itertools

import pytest
import torch

from lmreach.errors import ModelError
from lmreach.experiments.census.decode import decode_block
from lmreach.experiments.census.tokens import TokenPlan, count_outputs, decode_plan_block
from lmreach.models.decode import greedy
from lmreach.models.load import load
from tests.models.common import loaded_tiny, random_vectors
from tests.models.every_family import build
from tests.models.odd import odd


@pytest.fixture(scope="module")
def ctrl():
    """A family that scales what it is given in place."""
    return load(build("ctrl"))


def _generate(model, ids, n):
    """The slow reference: the library's own logits for ids, the sequence growing by one each step."""
    for _ in range(n):
        with torch.no_grad():
            top = model(input_ids=ids, use_cache=False).logits[:, -1].argmax(dim=-1, keepdim=True)
        ids = torch.cat([ids, top], dim=1)
    return ids[:, -n:]


def test_vectors_stay_as_they_are_and_two_calls_agree(ctrl):
    vectors = random_vectors(ctrl, 2, 4)
    before = vectors.clone()
    first, second = ctrl.logits(vectors), ctrl.logits(vectors)
    assert torch.equal(vectors, before)
    assert torch.equal(first, second)
    own = ctrl.model(inputs_embeds=before.clone(), use_cache=False).logits
    torch.testing.assert_close(first, own)


def test_a_leaf_gets_its_gradient_although_the_model_works_in_place(ctrl):
    vectors = random_vectors(ctrl, 1, 3).requires_grad_()
    ctrl.logits(vectors)[:, -1].max().backward()
    assert bool((vectors.grad != 0).all(dim=-1).all())


def test_greedy_decoding_is_what_the_model_generates(ctrl):
    prompts = torch.arange(10)[:, None] + torch.tensor([[3, 20, 41]])
    expected = _generate(ctrl.model, prompts, 6)
    for prompt, ids in zip(prompts, expected, strict=True):
        assert greedy(ctrl, ctrl.input_vectors(prompt), 6).ids.tolist() == ids.tolist()
    assert decode_block(ctrl, ctrl.input_vectors(prompts), 6).ids.tolist() == expected.tolist()


def test_a_census_counts_what_the_model_generates(ctrl):
    outputs = _generate(ctrl.model, torch.arange(ctrl.facts.rows)[:, None], 4)
    plan = TokenPlan(1, 4, ctrl.facts.usable)
    blocks = [decode_plan_block(ctrl, plan, k) for k in range(plan.blocks)]
    counted = count_outputs(ctrl, plan, blocks, seconds=0.0)
    assert [each.distinct for each in counted.lengths] == [
        len(outputs[:, :n].unique(dim=0)) for n in range(1, 5)
    ]


@pytest.mark.parametrize(
    ("family", "check"),
    [
        ("gemma4_text", "check 'free vectors can be handed in' failed"),
        ("gemma3n_text", "check 'ids and vectors agree' failed"),
        ("reformer", "check 'gradients reach the vectors' failed"),
        ("xlm", "check 'a later token changes no earlier logits' failed"),
    ],
)
def test_families_that_take_no_free_vectors_are_refused_by_name(family, check):
    with pytest.raises(ModelError, match=check):
        load(build(family))


@pytest.mark.parametrize(
    ("oddity", "check"),
    [
        ("mixes rows", "a row changes no other row's logits"),
        ("looks ahead a little", "a later vector changes no earlier logits"),
        ("random", "two passes over the same vectors agree"),
        ("cut off from its input", "gradients reach the vectors"),
        ("needs long rows", "one vector can be handed in alone"),
    ],
)
def test_what_only_free_vectors_show_is_refused_by_name(oddity, check):
    with pytest.raises(ModelError, match=f"check '{check}' failed"):
        load(odd(oddity))


LIMITS = {
    "ctrl": 64,  # n_positions; a table that is no parameter
    "gpt_neo": 64,
    "mpt": 64,  # max_seq_len; distances cut from a table
    "opt": 64,  # a table with 2 rows more
    "roberta": 61,  # 64 rows, those up to the padding id (2) unused
    "whisper": 64,  # max_target_positions
}


@pytest.mark.parametrize("family", LIMITS)
def test_the_context_is_what_the_code_allows(family):
    loaded = load(build(family))
    assert loaded.facts.context == LIMITS[family]
    with torch.no_grad():
        assert torch.isfinite(loaded.logits(random_vectors(loaded, 1, LIMITS[family]))).all()
        with pytest.raises((IndexError, RuntimeError)):
            loaded.logits(random_vectors(loaded, 1, LIMITS[family] + 1))


@pytest.mark.parametrize(("family", "stated"), [("bloom", None), ("minimax", 64), ("llama", 64)])
def test_without_a_table_of_positions_the_context_is_what_is_stated(family, stated):
    """ALiBi has no limit, MiniMax a table of one block of 16 positions, rotary positions a stated length."""
    loaded = load(build(family))
    assert loaded.facts.context == stated
    with torch.no_grad():
        assert torch.isfinite(loaded.logits(random_vectors(loaded, 1, 80))).all()


@pytest.mark.parametrize("family", ["gemma2", "cohere", "granite", "llama"])
def test_16_bit_logits_are_the_models_own_to_the_last_bit(family):
    """Caps and factors rounded in float32 would break ties that the model has."""
    loaded = load(build(family).to(torch.bfloat16))
    vectors = random_vectors(loaded, 40, 3)
    with torch.no_grad():
        own = loaded.model(inputs_embeds=vectors.to(torch.bfloat16), use_cache=False).logits
        assert torch.equal(loaded.logits(vectors), own.float())


def test_ties_of_a_16_bit_model_are_ties_here():
    loaded = load(loaded_tiny("gemma2", vocab_size=4000).model.to(torch.bfloat16))
    with torch.no_grad():  # logits near the cap, as in a trained model
        loaded.model.model.norm.weight.add_(8.0)
    loaded = load(loaded.model)
    vectors = random_vectors(loaded, 300, 2)
    with torch.no_grad():
        own = loaded.model(inputs_embeds=vectors.to(torch.bfloat16), use_cache=False).logits[:, -1].float()
    top = own.topk(2).values
    tied = top[:, 0] == top[:, 1]
    assert 3 < int(tied.sum()) < 300
    for row, logits, tie in itertools.islice(zip(vectors, own, tied, strict=True), 60):
        decoded = greedy(loaded, row, 1)
        assert decoded.ids[0] == int(logits.argmax())
        assert (decoded.smallest_gap == 0) == bool(tie)
