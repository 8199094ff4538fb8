"""The chunked loss against a textbook one that holds all logits."""

import pytest
import torch

from lmreach.experiments.cramming import scoring
from lmreach.models.load import load
from lmreach.models.tiny import tiny


def textbook(model, hidden, ids, scored):
    """All logits at once, autograd through them, one row after another."""
    leaf = hidden.clone().requires_grad_(True)
    logits = model.head_logits(leaf)
    losses = []
    for row in range(len(ids)):
        count = int(scored[row].sum())
        losses.append(torch.nn.functional.cross_entropy(logits[row, :count], ids[row, :count]))
    (grad,) = torch.autograd.grad(torch.stack(losses).sum(), leaf)
    prefix = []
    for row in range(len(ids)):
        count, n = 0, int(scored[row].sum())
        while count < n and int(logits[row, count].argmax()) == int(ids[row, count]):
            count += 1
        prefix.append(count)
    return torch.stack(losses).detach(), prefix, grad


@pytest.mark.parametrize("family", ["gpt_neox", "gemma2", "gemma3_text", "phi", "opt"])
@pytest.mark.parametrize("at_once", [1, 64 * 3, 1 << 23])
def test_score_is_the_textbook_loss(family: str, at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the chunk, and with head bias (phi) and soft cap (gemma 2)."""
    monkeypatch.setattr(scoring, "_LOGITS_AT_ONCE", at_once)
    model = load(tiny(family))
    generator = torch.Generator().manual_seed(0)
    hidden = torch.randn(3, 5, model.facts.hidden_width, generator=generator)
    ids = torch.randint(model.facts.rows, (3, 5), generator=generator)
    greedy = model.head_logits(hidden).argmax(-1)
    ids[0], ids[1, :2] = greedy[0], greedy[1, :2]
    ids[1, 2] = (greedy[1, 2] + 1) % model.facts.rows
    scored = torch.arange(5) < torch.tensor([[5], [4], [1]])
    found = scoring.score(model, hidden, ids, scored)
    loss, prefix, grad = textbook(model, hidden, ids, scored)
    torch.testing.assert_close(found.loss, loss, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(found.hidden_grad, grad, rtol=1e-5, atol=1e-7)
    assert found.prefix.tolist() == prefix
    assert found.prefix[0] == 5
    assert found.prefix[1] == 2


def test_unsolved_positions_pull_harder_and_solved_ones_as_before() -> None:
    """The gradient is linear in the weights: a solved position's is unchanged, an unsolved one's grows."""
    model = load(tiny("llama"))
    hidden = torch.randn(2, 4, model.facts.hidden_width, generator=torch.Generator().manual_seed(1))
    ids = model.head_logits(hidden).argmax(-1)
    ids[0, 1] = (ids[0, 1] + 1) % model.facts.rows
    scored = torch.ones(2, 4, dtype=torch.bool)
    plain = scoring.score(model, hidden, ids, scored)
    heavy = scoring.score(model, hidden, ids, scored, unsolved=6.0)
    factor = torch.ones(2, 4)
    factor[0, 1] = 6.0
    torch.testing.assert_close(heavy.hidden_grad, factor[..., None] * plain.hidden_grad)
    torch.testing.assert_close(heavy.loss, plain.loss)
    ids[1, 3] = (ids[1, 3] + 1) % model.facts.rows
    each = scoring.score(model, hidden, ids, scored, unsolved=torch.tensor([6.0, 2.0]))
    factor[1, 3] = 2.0
    plain = scoring.score(model, hidden, ids, scored)
    torch.testing.assert_close(each.hidden_grad, factor[..., None] * plain.hidden_grad)


def test_near_is_the_prefix_with_some_slack() -> None:
    model = load(tiny("llama"))
    hidden = torch.randn(1, 3, model.facts.hidden_width, generator=torch.Generator().manual_seed(1))
    logits = model.head_logits(hidden)
    values, order = logits.topk(2, dim=-1)
    ids = order[..., 0].clone()
    ids[0, 1] = order[0, 1, 1]
    short = float((values[0, 1, 0] - values[0, 1, 1]) / values[0, 1, 0].abs())
    scored = torch.ones(1, 3, dtype=torch.bool)
    tight, loose = (scoring.score(model, hidden, ids, scored, slack=f * short) for f in (0.9, 1.1))
    assert tight.prefix.tolist() == tight.near.tolist() == loose.prefix.tolist() == [1]
    assert loose.near.tolist() == [3]
    assert scoring.emitted(model, hidden, ids).tolist() == [1]
