"""The chunked loss against a textbook one that holds all logits."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lmreach.experiments.cramming import scoring
from lmreach.experiments.cramming.competitors import score_among
from lmreach.models.decode import lead, leads
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


def with_equal_rows(family: str = "llama"):
    """A model in which ids 5 and 9 have the same row, so that neither can ever lead."""
    inner = tiny(family, tie_word_embeddings=False)
    with torch.no_grad():
        inner.lm_head.weight[9] = inner.lm_head.weight[5]
    return load(inner)


def test_a_tie_is_no_lead_in_any_of_the_passes() -> None:
    """Decoding, the pass that checks proposals and both scorings agree: the first id of a tie is not out."""
    model = with_equal_rows()
    row = model.head_weight[5].float()
    hidden = (20 * row / row.square().mean().sqrt()).expand(1, 3, -1).clone()
    hidden[0, 0] = 20 * model.head_weight[7].float()
    logits = model.head_logits(hidden)
    assert logits[0, 1].argmax() == 5
    assert logits[0, 1, 5] == logits[0, 1, 9]
    ids = torch.tensor([[int(logits[0, 0].argmax()), 5, 5]])
    scored = torch.ones(1, 3, dtype=torch.bool)
    assert lead(logits[0], ids[0])[1:].tolist() == [0, 0]
    assert leads(lead(logits[0], ids[0])).tolist() == [True, False, False]
    assert scoring.emitted(model, hidden, ids).tolist() == [1]
    everything = torch.arange(model.facts.rows)[None]
    whole = scoring.score(model, hidden, ids, scored)
    few = score_among(model, hidden, ids, scored, everything, unsolved=torch.ones(1))
    for found in (whole, few):
        assert (found.prefix.tolist(), found.hits.tolist()) == ([1], [1])


@given(
    st.lists(st.integers(-3, 3), min_size=2, max_size=5),
    st.sampled_from([1e-8, 1.0, 1e4]),
    st.data(),
)
def test_hits_are_strict_leads_however_close_the_logits(values: list[int], unit: float, data) -> None:
    """The reference in one line; units so small that two shares round to the same number, too."""
    at = data.draw(st.integers(0, len(values) - 1))
    logits, ids = torch.tensor([values], dtype=torch.float32) * unit, torch.tensor([at])
    strict = all(values[at] > other for i, other in enumerate(values) if i != at)
    one = torch.ones(1)
    _, hit, near, _ = scoring.softmax_gradient(logits, ids, one, one, 0.0)
    assert bool(leads(lead(logits, ids))) is bool(hit) is strict
    assert bool(near) is (values[at] == max(values))


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_what_is_no_number_leads_nothing(value: float) -> None:
    logits, ids = torch.tensor([[value, 1.0, 0.0]]), torch.tensor([0])
    assert not bool(leads(lead(logits, ids)))
    one = torch.ones(1)
    assert not bool(scoring.softmax_gradient(logits, ids, one, one, 0.0)[1])
