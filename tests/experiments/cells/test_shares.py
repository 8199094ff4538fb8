"""Counts of cells: against brute force in float64, closed forms, and every way of splitting the work."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lmreach.errors import InputError, ModelError
from lmreach.experiments.cells.decoder import Decoder, decoder_of
from lmreach.experiments.cells.shares import CellFinder, count_cells
from lmreach.experiments.states import measures
from lmreach.models.facts import FinalNorm


def decoder(rows, bias=None, *, gain=None, norm_bias=None, kind="rms") -> Decoder:
    rows = torch.as_tensor(np.asarray(rows), dtype=torch.float32)
    count, width = rows.shape
    bias = torch.zeros(count) if bias is None else torch.as_tensor(np.asarray(bias), dtype=torch.float32)
    gain = np.ones(width) if gain is None else np.asarray(gain)
    norm = FinalNorm(kind, gain, np.zeros(width) if norm_bias is None else np.asarray(norm_bias))
    return Decoder("rows", "0" * 16, np.arange(count) + 7, rows, bias, norm)


def brute(found: Decoder, states: torch.Tensor, convention: str = "argmax") -> np.ndarray:
    w, b, h = found.rows.double().numpy(), found.bias.double().numpy(), states.double().numpy()
    if convention == "argmax":
        return (h @ w.T + b).argmax(1)
    return ((h[:, None, :] - w[None]) ** 2).sum(2).argmin(1)


def share_of(found: Decoder, measure: measures.Measure, samples: int) -> np.ndarray:
    counted = count_cells(found, measure, samples)
    assert counted.counts.sum() == counted.samples == samples
    return counted.counts / samples


@pytest.mark.parametrize("convention", ["argmax", "nearest-row"])
@given(st.integers(0, 10**6))
@settings(max_examples=25, deadline=None)
def test_winners_are_those_of_float64(convention: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    count, width = int(rng.integers(2, 3000)), int(rng.integers(1, 12))
    found = decoder(rng.normal(size=(count, width)), rng.normal(size=count))
    states = torch.from_numpy(rng.normal(size=(40, width)).astype(np.float32))
    winners, _ = CellFinder(found, convention).find(states)
    assert (winners.numpy() == brute(found, states, convention)).all()


def test_argmax_and_nearest_row_are_two_partitions() -> None:
    found = decoder([[3, 0], [0, 1]])
    point = torch.tensor([[0.5, 1.2]])
    assert CellFinder(found).find(point)[0].tolist() == [0]
    assert CellFinder(found, "nearest-row").find(point)[0].tolist() == [1]


def test_close_states_are_decided_in_float64() -> None:
    # The second row beats the first by 2^-24 of its size: float32 sums of 400 terms cannot tell.
    rng = np.random.default_rng(0)
    row = rng.normal(size=400).astype(np.float32)
    better = row.copy()
    better[7] = np.nextafter(row[7], np.float32(np.inf) * np.sign(row[7]))
    found = decoder(np.stack([row, better, -row]))
    states = torch.from_numpy(rng.normal(size=(500, 400)).astype(np.float32))
    winners, close = CellFinder(found).find(states)
    assert (winners.numpy() == brute(found, states)).all()
    assert close > 100


def test_ties_go_to_the_first_token() -> None:
    row = np.random.default_rng(0).normal(size=(1, 5))
    found = decoder(np.repeat(row, 2500, axis=0))
    winners, close = CellFinder(found).find(torch.randn(20, 5))
    assert winners.tolist() == [0] * 20
    assert close == 20


def test_counts_depend_neither_on_blocking_nor_on_splitting(monkeypatch) -> None:
    from lmreach.experiments.cells import shares as cell_shares

    rng = np.random.default_rng(1)
    found = decoder(rng.normal(size=(700, 24)).round(1), rng.normal(size=700).round(1))
    measure = measures.gaussian(found.norm, seed=5)
    whole = count_cells(found, measure, 10_000)
    assert whole.close > 0
    parts = [count_cells(found, measure, 10_000, blocks=range(a, b)) for a, b in ((0, 1), (1, 3))]
    assert (sum(part.counts for part in parts) == whole.counts).all()
    assert sum(part.samples for part in parts) == 10_000
    for states, rows in ((7, 1), (64, 13), (5000, 5000)):
        monkeypatch.setattr(cell_shares, "_STATES", states)
        monkeypatch.setattr(cell_shares, "_ROWS", rows)
        again = count_cells(found, measure, 500)
        assert (again.counts == np.bincount(brute(found, measure.draw(0)[:500]), minlength=700)).all()
    threads = torch.get_num_threads()
    torch.set_num_threads(2)
    assert (count_cells(found, measure, 10_000).counts == whole.counts).all()
    torch.set_num_threads(threads)


def test_a_larger_count_contains_a_smaller_one() -> None:
    found = decoder(np.random.default_rng(0).normal(size=(9, 3)))
    measure = measures.gaussian(found.norm, seed=0)
    small, large = count_cells(found, measure, 100), count_cells(found, measure, 9000)
    assert (small.counts <= large.counts).all()


def test_signed_axes_have_equal_shares() -> None:
    d = 14
    found = decoder(np.concatenate([np.eye(d), -np.eye(d)]))
    shares = share_of(found, measures.box(-np.ones(d), np.ones(d), seed=0), 20_000)
    assert np.abs(shares - 1 / 28).max() < 0.0053  # 4 standard errors
    assert np.abs(share_of(found, measures.gaussian(found.norm, seed=0), 20_000) - 1 / 28).max() < 0.0053


def test_a_row_of_zeros_between_opposites_is_never_hit() -> None:
    found = decoder([[1, 0], [-1, 0], [0, 0]])
    assert share_of(found, measures.gaussian(found.norm, seed=0), 10_000)[2] == 0


@pytest.mark.parametrize("k", [3, 8])
def test_equal_angles_in_the_plane(k: int) -> None:
    turns = 2 * np.pi * np.arange(k) / k
    found = decoder(np.stack([np.cos(turns), np.sin(turns)], axis=1))
    shares = share_of(found, measures.ball(3.0, width=2, seed=0), 20_000)
    assert np.abs(shares - 1 / k).max() < 4 * np.sqrt(1 / k * (1 - 1 / k) / 20_000)


def test_unit_rows_share_a_gaussian_evenly() -> None:
    shares = share_of(decoder(np.eye(5)), measures.gaussian(decoder(np.eye(5)).norm, seed=1), 20_000)
    assert np.abs(shares - 1 / 5).max() < 4 * np.sqrt(0.16 / 20_000)


def test_without_biases_only_the_direction_counts() -> None:
    rng = np.random.default_rng(2)
    found = decoder(rng.normal(size=(60, 8)))
    counts = [
        count_cells(found, measure, 5000).counts
        for measure in (
            measures.gaussian(found.norm, seed=0),
            measures.ellipsoid(found.norm, seed=0),
            measures.ball(7.0, width=8, seed=0),
        )
    ]
    assert (counts[0] == counts[1]).all()
    assert (counts[0] == counts[2]).all()


def test_ellipsoid_and_gaussian_agree_under_a_shaped_norm_without_biases() -> None:
    rng = np.random.default_rng(3)
    for kind in ("rms", "layer"):
        found = decoder(rng.normal(size=(60, 8)), gain=rng.normal(size=8), kind=kind)
        gaussian, ellipsoid = (make(found.norm, seed=0) for make in (measures.gaussian, measures.ellipsoid))
        moved = count_cells(found, gaussian, 5000).counts - count_cells(found, ellipsoid, 5000).counts
        # The same directions at another radius: only float32 rounding of the states can move one.
        assert np.abs(moved).sum() <= 2


def test_the_bias_of_the_head_counts_and_the_soft_cap_does_not() -> None:
    rows = np.zeros((3, 4))
    rows[0, 0] = 1
    heavy = decoder(rows, [0.0, 5.0, 0.0], gain=np.full(4, 0.1))
    assert share_of(heavy, measures.gaussian(heavy.norm, seed=0), 1000)[1] == 1


def test_real_decoder_of_a_model(random_model) -> None:
    found = decoder_of(random_model)
    measure = measures.empirical(random_model, kinds=("random",), length=8, seed=0)
    counted = count_cells(found, measure, 512)
    with torch.no_grad():
        told = random_model.head_logits(measure.draw(0))[:, found.ids].argmax(1)
    assert (counted.counts == np.bincount(told.numpy(), minlength=found.vocab)).all()
    assert not counted.independent
    assert (counted.ids == found.ids).all()


def test_stopping_leaves_what_was_counted() -> None:
    found = decoder(np.eye(3))
    seen: list[int] = []
    counted = count_cells(
        found,
        measures.gaussian(found.norm, seed=0),
        100_000,
        say=seen.append,
        stop=lambda: len(seen) == 2,
    )
    assert counted.samples == counted.counts.sum() == seen[-1] == 2 * 4096


def test_refusals() -> None:
    found = decoder(np.eye(3))
    with pytest.raises(InputError, match="at least 1 sample"):
        count_cells(found, measures.gaussian(found.norm, seed=0), 0)
    with pytest.raises(InputError, match="argmax or nearest-row"):
        CellFinder(found, "voronoi")
    with pytest.raises(InputError, match="width 3; got states of width 4"):
        count_cells(found, measures.ball(1.0, width=4, seed=0), 10)
    broken = measures.Measure("gaussian", "broken", 4, 0, True, lambda block: torch.full((4, 3), torch.nan))
    with pytest.raises(ModelError, match="finite hidden states"):
        count_cells(found, broken, 4)
