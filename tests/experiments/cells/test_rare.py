"""Rare cells of a decoder: closed forms, plain sampling, the plain reference, coverage, and bad input."""

import math

import numpy as np
import pytest
import torch
from scipy import special, stats

from lmreach.errors import InputError
from lmreach.experiments.cells.decoder import Decoder, decoder_of
from lmreach.experiments.cells.rare import (
    GaussianScores,
    RareStopped,
    gaussian_scores,
    plain_hits,
    rare_cells,
)
from lmreach.experiments.cells.rare_moves import arc, move
from lmreach.maths.splitting import LogProbability, Splitting, log_polyhedron
from lmreach.models.facts import FinalNorm

QUICK = Splitting(particles=48, replicates=8, start=128)
# Errors beyond this many standard errors: for one fixed seed and Student's t of 7 degrees, chance 1 in 500.
WIDE = 4.5


def scores(rows: np.ndarray, offset: np.ndarray | None = None) -> GaussianScores:
    rows = np.asarray(rows, dtype=np.float32)
    offset = np.zeros(len(rows)) if offset is None else np.asarray(offset)
    ids = np.arange(len(rows))
    return GaussianScores(ids, torch.from_numpy(rows), torch.tensor(offset, dtype=torch.float32), "test")


def one_sided(h: int, bounds: np.ndarray) -> GaussianScores:
    """Token 0 wins where u_i > bounds_i for all i: a product of known tails."""
    k = len(bounds)
    rows = np.zeros((k + 1, h))
    rows[1:, :k] = -np.eye(k)
    return scores(rows, np.concatenate([[0], bounds]))


def share(of: GaussianScores, token: int, options: Splitting = QUICK, seed: int = 0) -> LogProbability:
    return rare_cells(of, [token], rng=np.random.default_rng(seed), options=options).tokens[0].share


def decoder(rows: np.ndarray, norm: FinalNorm, bias: np.ndarray | None = None) -> Decoder:
    rows = torch.tensor(np.asarray(rows), dtype=torch.float32)
    bias = torch.zeros(len(rows)) if bias is None else torch.tensor(bias, dtype=torch.float32)
    return Decoder("test", "0" * 16, np.arange(len(rows)), rows, bias, norm)


def directions(k: int) -> np.ndarray:
    angle = 2 * np.pi * np.arange(k) / k
    return np.stack([np.cos(angle), np.sin(angle)], axis=1)


def log_tail(x: float) -> float:
    return float(special.log_ndtr(-x))


CLOSED = {
    "one of 2d": (scores(np.vstack([np.eye(14), -np.eye(14)])), -math.log(28)),
    "one of d": (scores(np.eye(100)), -math.log(100)),
    "equal angles": (scores(directions(500)), -math.log(500)),
    "exp(-198), one rival": (one_sided(80, np.array([19.7])), log_tail(19.7)),
    "exp(-203), six rivals": (one_sided(6, np.full(6, 7.8)), 6 * log_tail(7.8)),
    "exp(-41), 30 rivals in 90": (one_sided(90, np.full(30, 0.7)), 30 * log_tail(0.7)),
}


@pytest.mark.parametrize("case", CLOSED)
def test_closed_forms(case):
    of, truth = CLOSED[case]
    found = share(of, 0)
    assert found.verdict == "estimated"
    assert abs(found.value - truth) < WIDE * found.se
    assert 0 < found.se < 0.15 + 0.02 * abs(truth)


@pytest.mark.parametrize("case", ["one of 8", "product in 70"])
def test_coverage_of_the_interval(case):
    of, truth = {
        "one of 8": (scores(np.eye(8)), -math.log(8)),
        "product in 70": (one_sided(70, np.array([1.0, 1.5])), log_tail(1) + log_tail(1.5)),
    }[case]
    options = Splitting(particles=24, replicates=8, start=24)
    hits = 0
    for seed in range(200):
        found = share(of, 0, options, seed)
        hits += found.low <= truth <= found.high
    assert 180 <= hits <= 198


def test_agrees_with_plain_sampling(random_model):
    of = gaussian_scores(decoder_of(random_model))
    draws = 40_000
    hits = plain_hits(of, draws, rng=np.random.default_rng(1))
    assert hits.sum() == draws
    tokens = of.ids[np.argsort(-hits)[[0, 3, len(hits) // 4]]]
    found = rare_cells(of, tokens, rng=np.random.default_rng(2), options=QUICK)
    for token in found.tokens:
        count = hits[np.searchsorted(of.ids, token.id)]
        assert count > 20
        se = math.hypot(token.share.se, count**-0.5)
        assert abs(token.share.value - math.log(count / draws)) < WIDE * se


def test_agrees_with_the_plain_reference():
    rng = np.random.default_rng(5)
    rows, offset = rng.standard_normal((40, 6)), 0.3 * rng.standard_normal(40)
    offset[0] -= 4  # so that token 0 wins rarely
    rows[0] *= 2
    found = share(scores(rows, offset), 0)
    slow = log_polyhedron(rows[0] - rows[1:], offset[0] - offset[1:], rng=rng)
    assert slow.value < -3
    assert abs(found.value - slow.value) < WIDE * math.hypot(found.se, slow.se)


def test_tokens_outside_the_levels_enter_the_last_factor(monkeypatch):
    # With one rival per look, most of 300 equal rivals are never seen by a level.
    monkeypatch.setattr("lmreach.experiments.cells.rare._RIVALS", 1)
    for name, value in {"_SCOUTED": 1, "_WINNING": 0.1, "_ENOUGH": 0.1}.items():
        monkeypatch.setattr(f"lmreach.experiments.cells.rare.{name}", value)
    of = scores(np.eye(300))
    options = Splitting(particles=64, replicates=8, start=64)
    token = rare_cells(of, [7], rng=np.random.default_rng(0), options=options).tokens[0]
    assert token.rivals < 200
    assert abs(token.share.value + math.log(300)) < WIDE * token.share.se


def test_moves_leave_the_restricted_gaussian_unchanged():
    # u_0 and u_1 at least 1 apart from a wall each, in 70 dimensions so that subspaces are real ones.
    generator = torch.Generator().manual_seed(0)
    u = torch.randn(4000, 70, generator=generator)
    rng = np.random.default_rng(0)
    tail = stats.truncnorm(1, np.inf).rvs((4000, 2), random_state=rng)
    u[:, :2] = torch.from_numpy(tail).float()
    rows, offset = torch.eye(70)[:2], -torch.ones(2)
    moved, margins = move(u, rows, offset, 3, generator)
    assert (moved[:, :2] > 1 - 1e-5).all()
    torch.testing.assert_close(margins, (moved[:, :2] - 1).amin(1), atol=1e-5, rtol=0)
    assert (moved - u).abs().mean() > 0.1
    for column, law in ((0, stats.truncnorm(1, np.inf)), (1, stats.truncnorm(1, np.inf)), (5, stats.norm)):
        assert stats.kstest(moved[:, column].double().numpy(), law.cdf).pvalue > 1e-3


def test_arcs_against_a_fine_grid():
    generator = torch.Generator().manual_seed(1)
    x, towards = torch.randn(2, 300, 3, generator=generator)
    held = torch.randn(300, 3, generator=generator)
    held = torch.maximum(held, 0.05 - x)
    back, forth = arc(x, towards, held)
    grid = torch.linspace(0, 2 * math.pi, 20_001)
    for sign, ends in ((1, forth), (-1, -back)):
        t = sign * grid[None, :, None]
        inside = (x[:, None] * t.cos() + towards[:, None] * t.sin() + held[:, None] > 0).all(2)
        outside = ~inside
        first = torch.where(outside.any(1), outside.int().argmax(1), len(grid) - 1)
        assert ((grid[first] - ends).abs() < 2e-3).float().mean() > 0.99


def test_a_token_without_a_cell_ends_below_the_floor():
    of = scores(np.vstack([np.eye(4), -np.eye(4), np.zeros(4)]))
    found = share(of, 8, Splitting(particles=32, replicates=2, start=64, floor=-30.0))
    assert (found.verdict, found.value, found.at_most, found.logs) == ("below", None, -30.0, ())


def test_a_token_under_the_floor_is_below():
    of = one_sided(3, np.array([20.0]))
    assert share(of, 0, Splitting(particles=32, replicates=2, start=64, floor=-50.0)).verdict == "below"


def test_twins_never_win():
    rows = np.vstack([np.eye(3), np.eye(3)[:1]])
    found = rare_cells(scores(rows), [0, 1, 3], rng=np.random.default_rng(0), options=QUICK)
    assert [token.twin for token in found.tokens] == [3, None, 0]
    assert [token.share.verdict for token in found.tokens] == ["below", "estimated", "below"]
    biased = rare_cells(scores(rows, [1, 0, 0, 0]), [0, 3], rng=np.random.default_rng(0), options=QUICK)
    assert [token.twin for token in biased.tokens] == [None, 0]


def test_measure_is_the_norm_shaped_gaussian():
    rng = np.random.default_rng(0)
    rows, gain, shift = rng.standard_normal((9, 4)), rng.uniform(0.5, 2, 4), rng.standard_normal(4)
    u = torch.from_numpy(rng.standard_normal((50, 4))).float()
    for kind in ("rms", "layer"):
        bias = rng.standard_normal(9)
        of = decoder(rows, FinalNorm(kind, gain, shift), bias)
        z = u - u.mean(1, keepdim=True) if kind == "layer" else u
        hidden = torch.from_numpy(shift).float() + torch.from_numpy(gain).float() * z
        torch.testing.assert_close(gaussian_scores(of).of(u), of.scores(hidden), atol=1e-5, rtol=1e-5)
    plain = gaussian_scores(decoder(rows, FinalNorm("none", np.empty(0), np.empty(0))))
    assert "no known gain" in plain.measure
    torch.testing.assert_close(plain.of(u), u @ torch.from_numpy(rows).float().T)


def test_a_token_does_not_depend_on_its_company():
    of = scores(np.random.default_rng(0).standard_normal((60, 5)))
    together = rare_cells(of, [9, 3, 9, 40], rng=np.random.default_rng(1), options=QUICK)
    alone = rare_cells(of, [9], rng=np.random.default_rng(1), options=QUICK)
    assert [token.id for token in together.tokens] == [3, 9, 40]
    assert together.by_id()[9] == alone.by_id()[9]


def test_result_is_json_ready_and_progress_is_told():
    told = []
    norm = FinalNorm("rms", np.ones(3), np.zeros(3))
    found = rare_cells(
        decoder(np.eye(3), norm),
        [0, 2],
        rng=np.random.default_rng(0),
        options=QUICK,
        progress=lambda done, total: told.append((done, total)),
    )
    assert told == [(0, 2), (1, 2), (2, 2)]
    assert (found.model, len(found.tokens), found.tokens[1].id) == ("test", 2, 2)


@pytest.mark.parametrize(("tokens", "words"), [([], "at least 1 token"), ([99], "id 99"), ([-1], "id -1")])
def test_bad_tokens(tokens, words):
    with pytest.raises(InputError, match=words):
        rare_cells(scores(np.eye(3)), tokens, rng=np.random.default_rng(0))


def test_stopped_it_says_nothing_rather_than_what_was_quick():
    with pytest.raises(RareStopped, match="more time"):
        rare_cells(scores(np.eye(40)), [3, 5], rng=np.random.default_rng(0), stop=lambda: True)
