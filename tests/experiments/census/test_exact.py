"""The exact census on tiny models: theorems looked at, decoding checked at batch 1, sizes refused."""

import itertools
import math
from functools import cache

import numpy as np
import pytest
import torch

from lmreach.errors import InputError
from lmreach.experiments.census.decode import decode_block, settle
from lmreach.experiments.census.exact import census_grid, check_size, input_extent
from lmreach.experiments.census.grid import Grid
from lmreach.experiments.census.missing import Present, explain, find_missing
from lmreach.experiments.census.reasons import reasons
from lmreach.models.decode import greedy
from lmreach.models.load import load
from lmreach.models.loaded import LoadedModel
from lmreach.models.tiny_model import tiny_model

SPECS = [
    "tiny:llama,width=2,vocab=8",
    "tiny:llama,width=3,vocab=5,layers=2,positions=0",
    "tiny:gpt2,width=4,vocab=3",
    "tiny:gpt2,width=3,vocab=8,bits=4,positions=0",
    "tiny:mamba,width=2,vocab=8",
    "tiny:llama,width=3,vocab=8,bits=2",
    "tiny:llama,width=3,vocab=4,train=40",
]


@cache
def model_of(spec: str) -> LoadedModel:
    return load(tiny_model(spec))


def grid_of(model: LoadedModel, q: int, m: int) -> Grid:
    return Grid.even(q, input_extent(model), model.facts.width, m)


@pytest.mark.parametrize("spec", SPECS)
def test_counts_are_those_of_one_by_one_decoding_and_keep_to_the_bound(spec: str) -> None:
    model = model_of(spec)
    grid = grid_of(model, 2, 2)
    found = census_grid(model, grid, 5)
    prompts = torch.from_numpy(grid.block(0, grid.prompts))
    outputs = {tuple(greedy(model, prompt, 5).ids.tolist()) for prompt in prompts}
    slow = [len({ids[:k] for ids in outputs}) for k in range(1, 6)]
    assert [one.distinct for one in found.lengths] == slow
    for one in found.lengths:
        assert one.distinct <= min(grid.prompts, model.facts.rows**one.length)  # Theorem 4.5
        assert math.log(one.distinct) <= found.log_bound(one.length) + 1e-12
        assert one.prompts == grid.prompts
    assert slow == sorted(slow), "longer outputs can only tell more prompts apart"


def test_outputs_never_exceed_prompts_or_texts() -> None:
    """d = 2, V = 8, m = 1, n = 2: at most min(64, prompts) outputs, however fine the grid."""
    model = model_of("tiny:llama,width=2,vocab=8")
    for q in (2, 3, 8, 40):
        found = census_grid(model, grid_of(model, q, 1), 2)
        assert found.lengths[-1].distinct <= min(64, q**2)


def test_full_reach_grows_with_m_and_the_share_decays_by_v_per_token() -> None:
    model = model_of("tiny:llama,width=3,vocab=2")
    found = [census_grid(model, grid_of(model, 2, m), 16) for m in range(1, 5)]
    full = [one.fully_reachable for one in found]
    assert full == sorted(full)
    assert full[-1] >= full[0] + 3
    for one in found:
        # C m tokens at most (Corollary 4.6), with ln P = d ln q exactly.
        assert one.fully_reachable <= one.half_reachable
        assert one.fully_reachable <= one.m * 3 * math.log(2) / math.log(2)
        shares = [math.log(x.distinct) - x.length * math.log(2) for x in one.lengths]
        ceiling = [math.log(one.prompts) - x.length * math.log(2) for x in one.lengths]
        assert all(a <= min(b, 0.0) + 1e-12 for a, b in zip(shares, ceiling, strict=True))
    # Where all prompts of m = 1 differ, each further token costs exactly a factor V.
    last = found[0].lengths[-4:]
    assert len({one.distinct for one in last}) == 1


@pytest.mark.parametrize("family", ["llama,width=2", "gpt2,width=3"])
def test_one_block_without_positions_sees_no_order(family: str) -> None:
    model = model_of(f"tiny:{family},vocab=5,positions=0")
    for m in (3, 4) if model.facts.width == 2 else (3,):
        grids = [
            Grid.even(2, input_extent(model), model.facts.width, m, order) for order in ("all", "sorted")
        ]
        every, kept = (census_grid(model, grid, 8) for grid in grids)
        assert kept.prompts < every.prompts
        assert [one.distinct for one in kept.lengths] == [one.distinct for one in every.lengths]


def test_mamba_forgets_and_saturates() -> None:
    model = model_of("tiny:mamba,width=2,vocab=8")
    counts = [census_grid(model, grid_of(model, 2, m), 8).lengths[-1].distinct for m in (4, 5, 6)]
    assert len(set(counts)) == 1
    assert counts[0] < 4**4


def test_no_result_depends_on_the_last_block_or_on_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    from lmreach.experiments.census import exact as census

    model = model_of("tiny:llama,width=2,vocab=8")
    whole = census_grid(model, grid_of(model, 3, 3), 6)
    monkeypatch.setattr(census, "_BLOCK", 64)
    small = census_grid(model, grid_of(model, 3, 3), 6, memory_rows=1024)
    assert small.lengths == whole.lengths


def test_a_sketch_stands_in_for_counts() -> None:
    model = model_of("tiny:llama,width=2,vocab=8")
    exact, rough = (census_grid(model, grid_of(model, 3, 3), 6, sketch=sketch) for sketch in (False, True))
    assert rough.lengths == ()
    assert rough.missing is None
    assert [e.distinct for e in rough.estimates] == [one.distinct for one in exact.lengths]


def test_ties_take_the_lowest_id_and_are_counted() -> None:
    built = tiny_model("tiny:llama,width=2,vocab=4")
    with torch.no_grad():
        built.lm_head.weight[3] = built.lm_head.weight[1]
        built.lm_head.weight[2] = 0.0
    model = load(built)
    grid = grid_of(model, 3, 1)
    block = decode_block(model, torch.from_numpy(grid.block(0, 9)), 4)
    assert not (block.ids == 3).any()
    assert (block.close >= block.tied).all()
    assert block.tied.any() == bool((block.ids == 1).any())
    found = census_grid(model, grid, 4)
    assert found.tied == int(block.tied.sum())
    assert found.close >= found.tied


def test_close_rows_are_decided_at_batch_one() -> None:
    model = model_of("tiny:llama,width=2,vocab=8")
    vectors = torch.from_numpy(grid_of(model, 3, 1).block(0, 9))
    block = decode_block(model, vectors, 3)
    right = block.ids.copy()
    block.ids[:] = 0
    block.close[:] = [True, False, True, True, False, False, False, False, True]
    assert settle(model, vectors, block, 3, most=3) == 3
    assert np.array_equal(block.ids[[0, 2, 3]], right[[0, 2, 3]])
    assert not block.ids[8].any()


def test_missing_sequences_are_those_that_never_came() -> None:
    model = model_of("tiny:llama,width=3,vocab=5,layers=2,positions=0")
    grid = grid_of(model, 2, 2)
    missing = census_grid(model, grid, 3).missing
    assert missing is not None
    prompts = torch.from_numpy(grid.block(0, grid.prompts))
    came = {tuple(greedy(model, prompt, missing.length).ids.tolist()) for prompt in prompts}
    every = set(itertools.product(range(5), repeat=missing.length))
    assert set(map(tuple, missing.sequences.tolist())) == every - came
    assert (missing.count, missing.of) == (len(every - came), 5**missing.length)
    assert missing.never == tuple(sorted(set(range(5)) - {t for ids in came for t in ids}))
    assert missing.repeats_missing == sum((t,) * missing.length not in came for t in range(5))


def test_missing_takes_the_shortest_length_of_which_half_is_missing() -> None:
    present = Present.longest(2, 10, 1 << 10)
    assert present is not None
    assert present.length == 10
    present.add(np.array([[0] * 10, [0, 1] + [0] * 8, [1] * 10]))
    assert [present.of(k).share for k in (1, 2, 3)] == [1.0, 0.75, 3 / 8]
    found = find_missing(present, limit=2)
    assert (found.length, found.count) == (3, 5)
    assert found.sequences.tolist() == [[0, 0, 1], [0, 1, 1]]
    assert Present.longest(100, 3, 50) is None


def test_small_cells_are_the_missing_ones_when_they_are() -> None:
    present = Present(4, 2)
    present.add(np.array(list(itertools.product([0, 1, 2], repeat=2))))
    missing = find_missing(present, 100)
    told = explain(missing, np.array([0.4, 0.3, 0.3, 0.0]), unreachable=(3,))
    assert told.shares is not None
    assert told.shares.value == 1.0
    assert told.with_unreachable == missing.count == 7
    assert told.shares_reachable is None, "all sequences of occurring tokens came"
    with pytest.raises(InputError, match="4 shares"):
        explain(missing, np.ones(3))


def test_a_token_inside_the_hull_of_others_is_named_as_the_reason() -> None:
    built = tiny_model("tiny:llama,width=2,vocab=5")
    with torch.no_grad():
        built.lm_head.weight.copy_(torch.tensor([[1.0, 0], [0, 1], [-1, 0], [0, -1], [0.1, 0.1]]))
    model = load(built)
    found = census_grid(model, grid_of(model, 4, 2), 3)
    assert found.missing is not None
    why = reasons(model, found.missing)
    assert why is not None
    assert why.unreachable == (4,)
    assert 4 in found.missing.never
    assert why.with_unreachable > 0


def test_a_grid_too_large_is_refused_with_the_number() -> None:
    grids = [Grid.even(10, 1.0, 4, m) for m in (1, 2, 3)]
    with pytest.raises(InputError, match=r"1,000,100,010,000 .*m = 3.*--max-prompts"):
        check_size(grids, 10**6)
    check_size(grids[:2], 10**9)


def test_a_grid_that_does_not_fit_the_model_is_refused() -> None:
    model = model_of("tiny:llama,width=2,vocab=8")
    with pytest.raises(InputError, match="width 2"):
        census_grid(model, Grid.even(2, 1.0, 3, 1), 4)
    with pytest.raises(InputError, match="128 positions"):
        census_grid(model, grid_of(model, 2, 1), 128)
    with pytest.raises(InputError, match="n of at least 1"):
        census_grid(model, grid_of(model, 2, 1), 0)
