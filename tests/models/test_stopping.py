"""A pass ends between its blocks once the clock says so, and what was known before it stays known."""

import pytest
import torch

from lmreach.experiments.states.stream import hidden_support
from lmreach.experiments.targets.draw import draw
from lmreach.models.decode import greedy
from lmreach.models.load import load
from lmreach.models.stopping import PassStopped, stoppable
from lmreach.runs.cells.section import cells_section
from lmreach.runs.census.run import census_section
from tests.models.common import loaded_tiny, random_vectors
from tests.models.every_family import build
from tests.models.odd import odd


class After:
    """Says yes from the n-th time on that it is asked."""

    def __init__(self, asked: int) -> None:
        self.left = asked

    def __call__(self) -> bool:
        self.left -= 1
        return self.left < 0


@pytest.fixture(scope="module")
def llama():
    return loaded_tiny("llama")


@pytest.fixture(scope="module")
def projected():
    """OPT-350m's kind: no norm before the head, so its cells are measured with real states."""
    return load(build("opt, projected"))


def test_a_pass_ends_within_itself(llama):
    vectors = random_vectors(llama, 1, 3)
    stop = After(1)  # asked before the first of two blocks, then before the second
    with stoppable(stop), pytest.raises(PassStopped):
        llama.hidden(vectors)
    assert stop.left == -1


def test_a_pass_ends_on_its_way_back(llama):
    vectors = random_vectors(llama, 1, 3).requires_grad_()
    blocks = len(llama.wiring.blocks)
    with stoppable(After(blocks)):
        hidden = llama.hidden(vectors)
    with pytest.raises(PassStopped):
        torch.autograd.grad(hidden.sum(), vectors)
    with stoppable(lambda: False):
        watched = torch.autograd.grad(llama.hidden(vectors).sum(), vectors)[0]
    assert torch.equal(watched, torch.autograd.grad(llama.hidden(vectors).sum(), vectors)[0])


@pytest.mark.parametrize("oddity", ["none", "cache", "state divided"])
def test_every_kind_of_pass_asks(oddity):
    loaded = load(odd(oddity))
    with stoppable(lambda: True), pytest.raises(PassStopped):
        greedy(loaded, random_vectors(loaded, 2), 3)
    greedy(loaded, random_vectors(loaded, 2), 3)
    assert all(not m._forward_pre_hooks for m in loaded.model.modules())


def test_what_never_stops_changes_nothing(llama):
    vectors = random_vectors(llama, 2, 5)
    with stoppable(lambda: False), torch.no_grad():
        inside = llama.logits(vectors)
    with torch.no_grad():
        assert torch.equal(inside, llama.logits(vectors))


def test_limits_within_limits_all_count(llama):
    with stoppable(lambda: True), stoppable(lambda: False), pytest.raises(PassStopped):
        llama.hidden(random_vectors(llama, 1, 3))


def test_sampling_ends_within_its_steps(llama):
    with stoppable(After(9)), pytest.raises(PassStopped):
        draw(llama, "self", 4, 30, seed=0)


def test_the_support_keeps_what_was_through(llama):
    blocks = len(llama.wiring.blocks)
    assert hidden_support(llama, positions=256, stop=After(1)) is None
    some = hidden_support(llama, positions=256, length=64, stop=After(3 * blocks))
    assert some is not None  # random prompts were through, sampling others was not
    assert some.samples == 128
    assert hidden_support(llama, positions=256, length=64).samples == 256


def test_cells_of_real_states_are_left_out_with_a_reason(projected):
    assert projected.final_norm.kind == "other"
    found, notes = cells_section(projected, seconds=1e-3, seed=0, limit_dtype="float16")
    # Verdicts need no pass of the model, and may be through.
    assert (found.shares, found.map, found.rare) == (None, None, None)
    left_out = {what.removeprefix("decoder cells: ") for what, _ in notes}
    assert {"shares", "map", "rare"} <= left_out
    assert all(why for _, why in notes)


def test_a_census_of_no_block_is_none(llama):
    with pytest.raises(PassStopped):
        census_section(llama, budget_s=100.0, stop=lambda: True)
    counted = census_section(llama, budget_s=100.0)
    assert counted.tokens[0].prompts == 64
