"""Can it be said at all: no only with a proof, yes only with vectors."""

import numpy as np
import pytest
import torch

from lmreach.config import OptimiserConfig
from lmreach.errors import InputError
from lmreach.experiments.census.reachable import Candidate, confirm, search, unreachable_token
from lmreach.models.decode import greedy
from lmreach.models.load import load
from lmreach.models.loaded import LoadedModel
from lmreach.models.tiny_model import tiny_model


@pytest.fixture(scope="module")
def hulled() -> LoadedModel:
    """Token 4 lies inside the hull of the others."""
    built = tiny_model("tiny:llama,width=2,vocab=5")
    with torch.no_grad():
        built.lm_head.weight.copy_(torch.tensor([[1.0, 0], [0, 1], [-1, 0], [0, -1], [0.1, 0.1]]))
    return load(built)


def test_an_unreachable_token_is_a_proof_of_no(hulled: LoadedModel) -> None:
    answer = unreachable_token(hulled, np.array([1, 4, 0]))
    assert answer is not None
    assert answer.verdict == "no"
    assert "token 4" in answer.reason
    assert unreachable_token(hulled, np.array([1, 0])) is None


def test_vectors_that_emit_it_are_a_proof_of_yes_and_others_are_not(hulled: LoadedModel) -> None:
    vectors = np.array([[0.3, -1.0], [0.7, 0.2]], dtype=np.float32)
    ids = greedy(hulled, torch.from_numpy(vectors), 4).ids
    wrong = Candidate("elsewhere", -vectors[:1])
    answer = confirm(hulled, ids, [Candidate("a run", vectors), wrong])
    assert answer is not None
    assert (answer.verdict, answer.m) == ("yes", 2)
    assert answer.smallest_gap is not None
    assert answer.smallest_gap > 0
    assert confirm(hulled, (ids + 1) % 4, [Candidate("a run", vectors)]) is None


def test_a_search_finds_what_is_easy(random_model: LoadedModel) -> None:
    ids = np.array([7, 300])
    answer = search(random_model, ids, [2, 1], OptimiserConfig(max_steps=150), budget_s=60.0)
    assert answer.verdict == "yes"
    assert answer.vectors is not None
    assert answer.tried[0][0] == 1, "fewest vectors first"
    got = greedy(random_model, torch.from_numpy(answer.vectors), 2)
    assert np.array_equal(got.ids, ids)


def test_a_search_that_ends_proves_nothing(random_model: LoadedModel) -> None:
    ids = np.arange(60)
    answer = search(random_model, ids, [1], OptimiserConfig(max_steps=3), budget_s=0.2)
    assert answer.verdict == "not found"
    assert "proves nothing" in answer.reason
    assert answer.vectors is None
    stopped = search(random_model, ids, [1, 2], OptimiserConfig(), budget_s=9.0, stop=lambda: True)
    assert (stopped.verdict, stopped.tried) == ("not found", ())


def test_no_vectors_asked_for_is_refused(random_model: LoadedModel) -> None:
    with pytest.raises(InputError, match="number of vectors"):
        search(random_model, np.array([1]), [], OptimiserConfig(), budget_s=1.0)
    with pytest.raises(InputError, match="512"):
        search(random_model, np.array([1]), [512], OptimiserConfig(), budget_s=1.0)
