"""Copiers: six kinds, each causal, each the same after a round trip, none of them mistaken for another."""

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor
from transformers import AutoModelForCausalLM, PreTrainedModel

from lmreach.errors import InputError, ModelError, OutputError
from lmreach.models.copiers import COPIERS, copier, head_mask, load_copier, save_copier
from lmreach.models.decode import greedy, greedy_batch
from lmreach.models.load import load
from lmreach.models.partial import read_parts

SMALL = {"width": 16, "layers": 2, "heads": 4, "rows": 30, "context": 128}
TRANSFORMERS = ("rope", "nope", "alibi", "hard_alibi")


def made(kind: str, seed: int = 0) -> PreTrainedModel:
    return copier(kind, **SMALL, seed=seed).eval()


def ids(rng: np.random.Generator, rows: int = 2, length: int = 12) -> Tensor:
    return torch.from_numpy(rng.integers(26, size=(rows, length)))


@torch.no_grad()
def logits(model: PreTrainedModel, given: Tensor) -> Tensor:
    out: Tensor = model(input_ids=given, use_cache=False).logits
    return out


@pytest.mark.parametrize("kind", COPIERS)
class TestEveryKind:
    def test_the_probe_takes_it_and_its_cache(self, kind: str) -> None:
        loaded = load(made(kind))
        assert loaded.facts.cache_ok
        assert loaded.facts.rows == 30
        assert loaded.facts.context == (None if kind in ("mamba", "lstm") else 128)

    def test_a_round_trip_is_exact(self, kind: str, tmp_path: Path, rng: np.random.Generator) -> None:
        model, given = made(kind), ids(rng)
        save_copier(model, kind, tmp_path)
        assert torch.equal(logits(load_copier(tmp_path), given), logits(model, given))

    def test_a_saved_one_is_a_model_like_any(
        self, kind: str, tmp_path: Path, rng: np.random.Generator
    ) -> None:
        model, given = made(kind), ids(rng)
        save_copier(model, kind, tmp_path)
        loaded = load(tmp_path)
        assert torch.allclose(loaded.logits(loaded.input_vectors(given)), logits(model, given), atol=1e-6)
        assert loaded.encode("abz").tolist() == [0, 1, 25]
        assert loaded.text([0, 1, 27]) == "ab<separator>"
        assert loaded.plain_ids.tolist() == list(range(26))
        parts = read_parts(tmp_path)
        assert (parts.rows, parts.width) == (30, 16)

    def test_the_seed_decides(self, kind: str, rng: np.random.Generator) -> None:
        given = ids(rng)
        before = torch.get_rng_state()
        assert torch.equal(logits(made(kind), given), logits(made(kind), given))
        assert not torch.equal(logits(made(kind), given), logits(made(kind, seed=1), given))
        assert torch.equal(torch.get_rng_state(), before)

    def test_a_batch_decodes_as_single_rows_do(self, kind: str, rng: np.random.Generator) -> None:
        loaded = load(made(kind))
        vectors = loaded.input_vectors(ids(rng, rows=3))
        together = greedy_batch(loaded, vectors, 10).numpy()
        alone = np.stack([greedy(loaded, row, 10).ids for row in vectors])
        assert (together == alone).all()

    def test_all_weights_can_be_trained(self, kind: str, rng: np.random.Generator) -> None:
        model, given = made(kind), ids(rng)
        model(input_ids=given, use_cache=False).logits.square().mean().backward()
        without = [name for name, p in model.named_parameters() if p.grad is None]
        assert without == []


@pytest.mark.parametrize("kind", TRANSFORMERS)
def test_what_a_kind_knows_of_places(kind: str) -> None:
    """In a string of one letter only the position code can tell places: NoPE's logits are all the same."""
    given = torch.zeros(1, 8, dtype=torch.long)
    with torch.no_grad():
        first, last = logits(made(kind), given)[0, [0, -1]]
    # The values that are averaged are equal too, so no weighting of them shows: change one.
    given[0, 2] = 1
    spread = logits(made(kind), given)[0, 3:].std(dim=0).max()
    assert torch.allclose(first, last, atol=1e-5)
    assert spread > 1e-5


@pytest.mark.parametrize("kind", TRANSFORMERS)
def test_order_of_earlier_tokens(kind: str) -> None:
    """One block without positions sees a set of earlier tokens; every position code sees their order."""
    model = copier(kind, **{**SMALL, "layers": 1}, seed=0).eval()
    one, other = torch.tensor([[3, 9, 5, 7]]), torch.tensor([[9, 5, 3, 7]])
    same = torch.allclose(logits(model, one)[0, -1], logits(model, other)[0, -1], atol=1e-6)
    assert same == (kind == "nope")


def test_alibi_is_the_slope_times_the_distance() -> None:
    mask = head_mask("alibi", 4, 0, 5)[0]
    for h in range(4):
        for i in range(5):
            for j in range(5):
                value = float(mask[h, i, j])
                if j > i:
                    assert value == torch.finfo(torch.float32).min
                else:
                    assert value == pytest.approx(-(2.0 ** (-2 * (h + 1))) * (i - j), rel=1e-6)


def test_hard_alibi_heads_see_so_many_positions() -> None:
    mask = head_mask("hard_alibi", 4, 0, 6)[0]
    seen = (mask == 0).sum(dim=-1)
    assert seen[0].tolist() == [1] * 6
    assert seen[1].tolist() == [1, 2, 2, 2, 2, 2]
    assert seen[2].tolist() == seen[3].tolist() == [1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize("kind", ["alibi", "hard_alibi"])
def test_masks_go_on_from_a_cache(kind: str) -> None:
    whole = head_mask(kind, 4, 0, 7)
    assert torch.equal(head_mask(kind, 4, 5, 2), whole[:, :, 5:])


@pytest.mark.parametrize("kind", ["alibi", "hard_alibi"])
def test_padding_before_changes_nothing(kind: str, rng: np.random.Generator) -> None:
    model, given = made(kind), ids(rng)
    padded = torch.cat([torch.full((2, 5), 29), given], dim=1)
    seen = torch.ones_like(padded)
    seen[:, :5] = 0
    with torch.no_grad():
        out = model(input_ids=padded, attention_mask=seen, use_cache=False).logits[:, 5:]
    assert torch.allclose(out, logits(model, given), atol=1e-5)


def test_a_plain_kind_needs_nothing_of_ours(tmp_path: Path, rng: np.random.Generator) -> None:
    model, given = made("nope"), ids(rng)
    save_copier(model, "nope", tmp_path)
    plain = AutoModelForCausalLM.from_pretrained(tmp_path).eval()
    assert type(plain).__module__.startswith("transformers.")
    assert torch.equal(logits(plain, given), logits(model, given))


def test_errors_say_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"one of rope, nope.*'sinusoidal'"):
        copier("sinusoidal", **SMALL, seed=0)
    with pytest.raises(InputError, match="width 16 and 3 heads"):
        copier("rope", **{**SMALL, "heads": 3}, seed=0)
    with pytest.raises(InputError, match=r"multiple of 16.*width 24"):
        copier("mamba", **{**SMALL, "width": 24}, seed=0)
    with pytest.raises(ModelError, match=r"copier\.json"):
        load_copier(tmp_path)
    (tmp_path / "file").touch()
    with pytest.raises(OutputError, match="can be written"):
        save_copier(made("lstm"), "lstm", tmp_path / "file")
