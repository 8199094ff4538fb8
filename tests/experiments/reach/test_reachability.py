"""Verdicts on all tokens at once, against one linear program per token and against Qhull."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial import ConvexHull

from lmreach.errors import InputError
from lmreach.experiments.cells.decoder import Decoder, decoder_of
from lmreach.experiments.reach.reachability import (
    Judge,
    judge_of,
    reachability,
    reachability_of,
    region_of,
)
from lmreach.maths import cells
from lmreach.maths.cells import RESOLUTION, WholeSpace, reach_by_lp
from lmreach.maths.supports import Box, Ellipsoid
from lmreach.models.facts import FinalNorm
from lmreach.models.load import load
from lmreach.models.tiny import tiny, tiny_tokenizer
from lmreach.runs.cells.parts import judged

NO_NORM = FinalNorm("none", np.empty(0), np.empty(0))


def decoder(rows: np.ndarray, bias: np.ndarray | None = None, ids: np.ndarray | None = None) -> Decoder:
    bias = np.zeros(len(rows)) if bias is None else bias
    ids = np.arange(len(rows)) if ids is None else ids
    return Decoder("planted", "0", ids, torch.tensor(rows).float(), torch.tensor(bias).float(), NO_NORM)


def check_proofs(found, rows: np.ndarray, bias: np.ndarray, region) -> None:
    """Check every witness and certificate in float64 with nothing but their definitions."""
    place = {int(i): k for k, i in enumerate(found.ids)}
    for token_id, verdict, method in zip(found.ids.tolist(), found.verdicts, found.methods, strict=True):
        t = place[token_id]
        if verdict in ("reachable", "tie-only"):
            h = found.witnesses.at(token_id).astype(np.float64)
            scores = rows @ h + bias
            others = np.delete(scores, t)
            assert scores[t] > others.max() if verdict == "reachable" else True
            slack = 1e-5 * (scores[t] - scores.mean())
            assert scores[t] >= others.max() - slack
            inside(h, region)
        if verdict in ("tie-only", "unreachable") and method == "certificate":
            proof = found.certificates[token_id]
            assert token_id not in proof.ids
            assert (proof.weights >= 0).all()
            np.testing.assert_allclose(proof.weights.sum() + proof.uniform, 1)
            chosen = [place[i] for i in proof.ids.tolist()]
            row = rows[t] - proof.weights @ rows[chosen] - proof.uniform * np.unique(rows, axis=0).mean(0)
            assert proof.bound <= RESOLUTION
            free = not isinstance(region, Box) or ((region.lo < 0) & (region.hi > 0)).all()
            if free and not bias.any():
                np.testing.assert_allclose(row, 0, atol=1e-6 * np.abs(rows).max())
            if verdict == "unreachable":
                assert proof.uniform > 0


def inside(h: np.ndarray, region) -> None:
    if isinstance(region, Box):
        assert (h >= region.lo).all()
        assert (h <= region.hi).all()
    if isinstance(region, Ellipsoid):
        assert np.linalg.norm((h - region.center) / region.axes) <= 1


def regions(d: int) -> list:
    grow = np.arange(1.0, d + 1)
    away = Box(np.full(d, 0.5), np.full(d, 2.0))  # 0 is outside
    edge = Box(np.zeros(d), np.ones(d))  # 0 is a corner
    return [WholeSpace(d), Box(-grow, 2 * grow), Ellipsoid(grow, np.full(d, 0.2)), away, edge]


@pytest.mark.parametrize("d", [2, 3, 4])
def test_reachable_are_the_vertices_of_the_hull(d: int, rng) -> None:
    rows = rng.normal(size=(60, d)).astype(np.float32).astype(np.float64)
    corners = set(ConvexHull(rows).vertices.tolist())
    for region in regions(d)[:3]:
        found = reachability(decoder(rows), region)
        assert set(found.having("reachable").tolist()) == corners
        assert found.counts["unreachable"] == 60 - len(corners)
        check_proofs(found, rows, np.zeros(60), region)


@pytest.mark.parametrize("which", range(5))
@pytest.mark.parametrize("biased", [False, True])
@pytest.mark.parametrize("d", [2, 5])
def test_as_one_program_per_token(which: int, biased: bool, d: int, rng) -> None:
    """Planted: copies, midpoints, inner points; with and without bias, on every kind of support."""
    rows, bias = rng.normal(size=(40, d)), 0.7 * rng.normal(size=40) * biased
    rows[37], bias[37] = rows[0], bias[0]
    rows[38], bias[38] = rows[:8].mean(axis=0), bias[:8].mean() - 0.1 * biased
    rows, bias = (one.astype(np.float32).astype(np.float64) for one in (rows, bias))
    region = regions(d)[which]
    found = reachability(decoder(rows, bias), region)
    slow = [reach_by_lp(t, rows, bias, region).verdict for t in range(40)]
    assert list(found.verdicts) == slow
    assert found.verdicts[38] == "unreachable"
    check_proofs(found, rows, bias, region)


@pytest.mark.parametrize("which", range(3))
def test_planted_ties(which: int) -> None:
    """A square: corners win unless they have a twin, the middle of an edge ties, the center does not."""
    corners = np.array([[1.0, 1], [-1, 1], [-1, -1], [1, -1]])
    rows = np.vstack([corners, [1, 0], [0, 0], [0.25, -0.125], corners[2], [1, 0]])
    found = reachability(decoder(rows), regions(2)[which])
    expected = ["reachable", "reachable", "tie-only", "reachable", "tie-only", "unreachable", "unreachable"]
    assert list(found.verdicts) == [*expected, "tie-only", "tie-only"]
    assert found.methods[2] == found.methods[7] == found.methods[4] == "same row"
    check_proofs(found, rows, np.zeros(9), regions(2)[which])


@settings(max_examples=25, deadline=None)
@given(
    st.integers(0, 2**32 - 1),
    st.integers(-8, 8),
    st.lists(st.integers(-4, 4), min_size=4, max_size=4),
    st.integers(0, 2),
)
def test_units_change_no_verdict(seed: int, power: int, units: list[int], which: int) -> None:
    """Rows times 2^k, and coordinates in other units together with the support: exact in float32."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(30, 4)).astype(np.float32).astype(np.float64)
    unit = 2.0 ** (3 * np.array(units))
    one = np.ones(4)
    here = [WholeSpace(4), Box(-one, 2 * one), Ellipsoid(one, 0.2 * one)][which]
    there = [WholeSpace(4), Box(-unit, 2 * unit), Ellipsoid(unit, 0.2 * unit)][which]
    plain = reachability(decoder(rows), here)
    other = reachability(decoder(rows * 2.0 ** (3 * power) / unit), there)
    assert plain.verdicts == other.verdicts


def test_brute_force_in_the_plane(rng) -> None:
    rows, bias = rng.normal(size=(50, 2)), rng.normal(size=50)
    region = Ellipsoid(np.array([2.0, 1.0]), np.zeros(2))
    found = reachability(decoder(rows, bias), region)
    turn, out = rng.uniform(0, 2 * np.pi, 400_000), np.sqrt(rng.random(400_000))
    points = out[:, None] * np.column_stack([2 * np.cos(turn), np.sin(turn)])
    shown = set(cells.argmax_cell(points, rows, bias).tolist())
    assert shown <= set(found.having("reachable").tolist())
    assert len(found.having("reachable")) - len(shown) <= 3  # cells too small for chance
    assert found.counts["undetermined"] == 0


def test_many_dimensions(rng) -> None:
    """Rows on a sphere all win; combinations of them never do, however many rivals are needed to see it."""
    outer = rng.normal(size=(400, 24))
    outer /= np.linalg.norm(outer, axis=1, keepdims=True)
    inner = rng.dirichlet(np.full(400, 0.05), 20) @ outer
    rows = np.vstack([outer, inner]).astype(np.float32).astype(np.float64)
    found = reachability(decoder(rows), WholeSpace(24))
    assert found.verdicts == ("reachable",) * 400 + ("unreachable",) * 20
    check_proofs(found, rows, np.zeros(420), WholeSpace(24))


def test_padded_rows_never_appear() -> None:
    model = load(tiny("llama"), tokenizer=tiny_tokenizer(50))
    found = reachability_of(model)
    assert found.vocab == len(found.ids) == 50
    assert found.ids.max() < 50
    for proof in found.certificates.values():
        assert proof.ids.max() < 50
    beaten = 0
    for token_id in found.having("reachable").tolist():
        logits = model.head_logits(torch.from_numpy(found.witnesses.at(token_id)))
        assert int(logits[:50].argmax()) == token_id
        beaten += int(logits.argmax()) != token_id
    assert beaten == found.padded_leads


@pytest.mark.parametrize("family", ["llama", "gpt2", "phi", "gemma2", "opt"])
def test_the_models_own_head_agrees(family: str) -> None:
    """Phi has a head bias, Gemma 2 a soft cap, GPT-2 a norm bias."""
    model = load(tiny(family))
    taken = decoder_of(model)
    found = reachability_of(model)
    assert found.counts["undetermined"] == 0
    assert found.counts["reachable"] > 0
    for token_id, margin in zip(found.ids.tolist(), found.margins, strict=True):
        if margin:
            logits = model.head_logits(torch.from_numpy(found.witnesses.at(token_id)))
            assert int(logits.argmax()) == token_id
            top = logits.topk(2).values
            np.testing.assert_allclose(float(top[0] - top[1]), margin, rtol=1e-3, atol=1e-5)
    rows, bias = taken.rows.double().numpy(), taken.bias.double().numpy()
    check_proofs(found, rows, bias, region_of(taken))


def test_a_head_that_disagrees_leaves_no_verdict(rng) -> None:
    """A head that computes so coarsely that all logits are equal confirms nothing."""
    rows = rng.normal(size=(12, 12))
    given = Judge(lambda h: torch.zeros(len(h), 12))
    found = reachability(decoder(rows), WholeSpace(12), judge=given)
    assert found.counts["undetermined"] == 12
    assert all("own head" in reason for reason in found.reasons.values())


def test_a_sample_and_a_stopped_run(rng) -> None:
    rows, ids = rng.normal(size=(40, 3)), np.arange(100, 140)
    whole = reachability(decoder(rows, ids=ids), WholeSpace(3))
    some = reachability(decoder(rows, ids=ids), WholeSpace(3), tokens=np.array([139, 101]))
    assert some.ids.tolist() == [101, 139]
    assert some.verdicts == (whole.verdicts[1], whole.verdicts[39])
    stopped = reachability(decoder(rows, ids=ids), WholeSpace(3), stop=lambda: True)
    assert stopped.counts["undetermined"] == 40
    assert set(stopped.reasons.values()) == {"the run ended first"}
    assert reachability(decoder(rows), WholeSpace(3), limit_s=0.0).counts["undetermined"] == 40
    with pytest.raises(InputError, match="judged"):
        some.witnesses.at(100)


def test_progress_ends_at_the_total(rng) -> None:
    seen: dict[str, tuple[int, int]] = {}
    rows = rng.normal(size=(40, 3))
    reachability(decoder(rows), WholeSpace(3), on_progress=lambda s, k, n: seen.update({s: (k, n)}))
    assert set(seen) == {"directions", "separation", "ties"}
    assert all(done == total for done, total in seen.values())


def test_what_it_costs_in_sequences() -> None:
    corners = np.array([[1.0, 1], [-1, 1], [-1, -1], [1, -1], [0, 0]])
    found = reachability(decoder(corners), WholeSpace(2))
    np.testing.assert_allclose(found.share_removed(3), 1 - 0.8**3)
    np.testing.assert_allclose(found.log_share_kept(1000), 1000 * np.log(0.8))
    assert found.share_removed(10, verdicts=("tie-only",)) == 0
    weights = np.array([1.0, 1, 1, 1, 12])
    shares = {"unigram": weights, "vocabulary": np.arange(5)}
    np.testing.assert_allclose(found.share_removed(2, **shares), 1 - 0.25**2)
    only = {"unigram": np.array([0.0, 0, 0, 0, 1]), "vocabulary": np.arange(5)}
    assert found.share_removed(1, **only) == 1.0
    with pytest.raises(InputError, match="without these verdicts"):
        found.log_share_kept(1, **only)
    with pytest.raises(InputError, match="one per id"):
        found.share_removed(1, unigram=weights)
    assert judged(found, {}).counts == found.counts


def test_all_rows_alike() -> None:
    found = reachability(decoder(np.ones((3, 2))), WholeSpace(2))
    assert found.verdicts == ("unreachable",) * 3
    assert judged(found, {}).counts == found.counts


@pytest.mark.parametrize(
    ("given_rows", "options", "words"),
    [
        (np.full((3, 2), np.nan), {}, "finite"),
        (np.zeros((3, 2)), {}, "zeros only"),
        (np.eye(3, 2), {"region": WholeSpace(3)}, "dimension 2"),
        (np.eye(3, 2), {"tokens": np.array([7])}, "id 7"),
        (np.eye(3, 2), {"tokens": np.array([], dtype=int)}, "at least 1 token"),
    ],
)
def test_refuses(given_rows: np.ndarray, options: dict, words: str) -> None:
    with pytest.raises(InputError, match=words):
        reachability(decoder(given_rows), **{"region": WholeSpace(2), **options})


def test_the_support_is_named_by_the_user() -> None:
    model = load(tiny("llama"))
    taken = decoder_of(model)
    assert isinstance(region_of(taken), Ellipsoid)
    assert isinstance(region_of(taken, "space"), WholeSpace)
    box = region_of(taken, "box", low=-np.ones(taken.width), high=np.ones(taken.width))
    assert isinstance(box, Box)
    with pytest.raises(InputError, match="lmreach support"):
        region_of(taken, "box")
    bare = decoder(np.eye(3, 2))
    assert isinstance(region_of(bare), WholeSpace)
    with pytest.raises(InputError, match="known gain"):
        region_of(bare, "ellipsoid")
    assert judge_of(model).soft_cap is None


@pytest.mark.parametrize("which", range(4))
def test_a_bias_in_many_dimensions(which: int, rng) -> None:
    """Sides of a box and tangent planes of an ellipsoid join as they are met; every proof is checked."""
    rows = (rng.normal(size=(500, 16)) * np.exp(0.3 * rng.normal(size=(500, 1)))).astype(np.float32)
    bias = (0.4 * rng.normal(size=500)).astype(np.float32)
    rows, bias = rows.astype(np.float64), bias.astype(np.float64)
    region = regions(16)[which]
    found = reachability(decoder(rows, bias), region)
    assert found.counts["undetermined"] <= 1
    assert min(found.counts["reachable"], found.counts["unreachable"]) > 10
    check_proofs(found, rows, bias, region)


def test_a_bias_far_below_the_others_changes_no_verdict(rng) -> None:
    """One bias of -10^9 among 200 made all the others "tie-only": 41 that lead and 158 that never do."""
    rows = rng.normal(size=(200, 3)).astype(np.float32).astype(np.float64)
    bias = (1e-3 * rng.normal(size=200)).astype(np.float32).astype(np.float64)
    for region in regions(3)[1:3]:
        far = reachability(decoder(rows, np.append(bias[:-1], -1e9)), region).verdicts
        alone = reachability(decoder(rows[:-1], bias[:-1]), region).verdicts
        assert list(far[:-1]) == list(alone)
        assert far[-1] == "unreachable"
        assert alone.count("reachable") == 41
        assert alone.count("unreachable") == 158
