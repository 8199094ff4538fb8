"""The census of real prompts: which prompts, decoded in blocks, and estimates beside counts."""

import numpy as np
import pytest
import torch

from lmreach.errors import InputError
from lmreach.experiments.census.tokens import (
    BLOCK,
    TokenPlan,
    check_plan,
    count_outputs,
    decode_plan_block,
    prompt_ids,
)
from lmreach.models.decode import greedy
from lmreach.models.frame import frame_of
from lmreach.models.load import load
from lmreach.models.loaded import LoadedModel
from lmreach.models.tiny import tiny, tiny_tokenizer
from lmreach.runs.census.records import token_record


@pytest.fixture(scope="module")
def small() -> LoadedModel:
    """A model of 300 rows, 290 of them usable."""
    return load(tiny("llama", vocab_size=300), tokenizer=tiny_tokenizer(290, bos=True))


def test_one_token_prompts_are_every_id_once(small: LoadedModel) -> None:
    plan = TokenPlan(1, 4, 290)
    prompts = np.concatenate([prompt_ids(small, plan, block) for block in range(plan.blocks)])
    assert prompts.shape == (290, 1)
    assert np.array_equal(np.sort(prompts[:, 0]), small.usable_ids)
    shorter = TokenPlan(1, 4, 130)
    assert np.array_equal(prompt_ids(small, shorter, 1), prompts[BLOCK:130])


def test_longer_prompts_are_drawn_and_a_larger_plan_begins_with_a_smaller_one(small: LoadedModel) -> None:
    few, more = TokenPlan(3, 4, 150, seed=5), TokenPlan(3, 4, 1000, seed=5)
    assert np.array_equal(prompt_ids(small, few, 1), prompt_ids(small, more, 1)[:22])
    assert prompt_ids(small, more, 7).shape == (1000 - 7 * BLOCK, 3)
    other = TokenPlan(3, 4, 150, seed=6)
    assert not np.array_equal(prompt_ids(small, other, 0), prompt_ids(small, few, 0))
    assert np.isin(prompt_ids(small, few, 0), small.usable_ids).all()


@pytest.mark.parametrize("bos", ["none", "before", "after"])
def test_blocks_hold_what_one_by_one_decoding_gives(small: LoadedModel, bos: str) -> None:
    plan = TokenPlan(2, 5, 20, bos=bos)  # type: ignore[arg-type]
    block = decode_plan_block(small, plan, 0)
    assert block.ids.shape == (20, 5)
    for ids, got in zip(prompt_ids(small, plan, 0), block.ids, strict=True):
        vectors = small.input_vectors(torch.from_numpy(ids))
        assert np.array_equal(greedy(small, vectors, 5, frame=frame_of(small, bos)).ids, got)  # type: ignore[arg-type]


def test_a_complete_census_has_nothing_to_estimate(small: LoadedModel) -> None:
    plan = TokenPlan(1, 4, 290)
    blocks = [decode_plan_block(small, plan, number) for number in range(plan.blocks)]
    counted = count_outputs(small, plan, blocks, seconds=1.0)
    outputs = np.concatenate([block.ids for block in blocks])
    assert counted.complete
    assert [one.distinct for one in counted.lengths] == [
        len(np.unique(outputs[:, :k], axis=0)) for k in range(1, 5)
    ]
    entry = token_record(small, counted).model_dump(mode="json")
    last = entry["lengths"][-1]
    assert (last["chao1"], last["coverage"]) == (None, None)
    assert last["distinct"] <= 290
    assert sum(shown["prompts"] for shown in last["top"]) <= 290
    assert last["top"][0]["text"] == small.text(last["top"][0]["ids"])
    curve = entry["discovery"][-1]
    assert (curve["prompts"][0], curve["distinct"][0]) == (1, pytest.approx(1.0))
    assert (curve["prompts"][-1], curve["distinct"][-1]) == (290, pytest.approx(last["distinct"]))


def test_a_sample_comes_with_estimates_above_what_was_seen(small: LoadedModel) -> None:
    plan = TokenPlan(2, 3, 200)
    blocks = [decode_plan_block(small, plan, number) for number in range(plan.blocks)]
    entry = token_record(small, count_outputs(small, plan, blocks, seconds=0.0)).model_dump(mode="json")
    assert not entry["complete"]
    for one in entry["lengths"]:
        assert one["distinct"] <= one["chao1"]["low"] <= one["chao1"]["value"]
        assert one["distinct"] <= one["ace"]["value"]
        assert 0 <= one["coverage"]["value"] <= 1
        assert np.log(one["distinct"]) <= one["log_bound_nats"]


@pytest.mark.parametrize(
    ("plan", "said"),
    [
        (TokenPlan(1, 4, 291), "290"),
        (TokenPlan(0, 4, 5), "at least 1"),
        (TokenPlan(1, 0, 5), "at least 1"),
        (TokenPlan(4, 125, 5), "128 positions"),
    ],
)
def test_plans_that_cannot_be_run_are_refused(small: LoadedModel, plan: TokenPlan, said: str) -> None:
    with pytest.raises(InputError, match=said):
        check_plan(small, plan)


def test_a_start_token_that_is_not_there_is_refused(random_model: LoadedModel) -> None:
    with pytest.raises(InputError, match="start token"):
        check_plan(random_model, TokenPlan(1, 4, 5, bos="before"))
    with pytest.raises(InputError, match="decoded block"):
        count_outputs(random_model, TokenPlan(1, 4, 5), [], seconds=0.0)
