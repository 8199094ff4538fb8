"""Mean log shares and what follows: closed forms, coverage with shared noise, verdicts, bad input."""

import json
import math
from dataclasses import asdict

import numpy as np
import pytest

from lmreach.errors import InputError
from lmreach.maths.splitting import LogProbability, lognormal_mean
from lmreach.stats.refined import (
    cell_limit,
    draw_unigram,
    hit_cells,
    mean_log_share,
    slope_ratio,
)

RUNS = 8


def estimate(logs: np.ndarray) -> LogProbability:
    return LogProbability.of(np.asarray(logs, dtype=float), 3, 0.95)


def exact(value: float) -> LogProbability:
    return estimate(np.full(RUNS, value))


def below(limit: float) -> LogProbability:
    return LogProbability(verdict="below", confidence=0.95, levels=0, at_most=limit)


def world(rng, tokens: int, *, own: float, shared: float) -> tuple[np.ndarray, dict[int, LogProbability]]:
    """True log shares, and estimates with noise of their own and noise that all tokens share."""
    truth = rng.normal(-15, 3, tokens)
    noise = shared * rng.standard_normal(RUNS) + own * rng.standard_normal((tokens, RUNS))
    logs = truth[:, None] + noise - (own**2 + shared**2) / 2
    return truth, {i: estimate(row) for i, row in enumerate(logs)}


def test_plain_mean_of_exact_shares():
    drawn = np.array([1, 1, 2, 5])
    mean = mean_log_share(drawn, {1: exact(-10), 2: exact(-12), 5: exact(-20)}, name="q")
    values = np.array([-10, -10, -12, -20])
    assert mean.value == pytest.approx(values.mean())
    assert mean.cross_entropy == -mean.value
    assert mean.se == pytest.approx(values.std(ddof=1) / 2)
    assert (mean.se_estimates, mean.draws, mean.distinct, mean.below) == (0, 4, 3, 0)
    assert mean.low < mean.value < mean.high


def test_equal_exact_shares_leave_no_doubt():
    mean = mean_log_share(np.array([1, 2]), {1: exact(-3), 2: exact(-3)}, name="q")
    assert (mean.se, mean.low, mean.high) == (0, -3, -3)


@pytest.mark.parametrize(("own", "shared"), [(0.7, 0.0), (0.3, 2.0), (0.0, 0.0)])
def test_coverage(own, shared):
    hits = 0
    for seed in range(300):
        rng = np.random.default_rng(seed)
        truth, shares = world(rng, 200, own=own, shared=shared)
        drawn = rng.integers(200, size=40)
        mean = mean_log_share(drawn, shares, name="q")
        hits += mean.low <= truth.mean() <= mean.high
    assert 0.90 <= hits / 300 <= 0.99


def test_coverage_of_the_ratio():
    hits = 0
    for seed in range(300):
        rng = np.random.default_rng(seed)
        truth, shares = world(rng, 200, own=0.5, shared=1.5)
        text = np.argsort(-truth)[:50]
        means = [
            mean_log_share(rng.choice(ids, 40), shares, name=name)
            for name, ids in (("text", text), ("uniform", np.arange(200)))
        ]
        ratio = slope_ratio(*means)
        hits += ratio.low <= truth.mean() / truth[text].mean() <= ratio.high
    assert 0.90 <= hits / 300 <= 0.99


def test_pseudo_values_by_leaving_out(rng):
    logs = rng.standard_normal(RUNS) - 9
    mean = mean_log_share(np.array([0, 0]), {0: estimate(logs)}, name="q")
    whole = lognormal_mean(logs)[0]
    for r, pseudo in enumerate(mean.replicates):
        part = lognormal_mean(np.delete(logs, r))[0]
        assert pseudo == pytest.approx(RUNS * whole - (RUNS - 1) * part)


def test_shared_noise_cancels_in_the_ratio():
    noise = np.random.default_rng(0).standard_normal(RUNS)
    shares = {i: estimate(-10 + noise) for i in range(4)}
    means = [mean_log_share(np.array(ids), shares, name="q") for ids in ([0, 1], [2, 3])]
    assert means[0].se > 0.1
    apart = math.hypot(*(mean.se / mean.cross_entropy for mean in means))
    assert slope_ratio(*means).se_log < 0.01 * apart


def test_limit_and_ratio_of_exact_shares():
    shares = {0: exact(-10), 1: exact(-10), 2: exact(-20), 3: exact(-20)}
    text = mean_log_share(np.array([0, 1]), shares, name="text")
    uniform = mean_log_share(np.array([2, 3]), shares, name="uniform")
    limit = cell_limit(400.0, text)
    assert (limit.value, limit.low, limit.high) == (40, 40, 40)
    ratio = slope_ratio(text, uniform)
    assert (ratio.value, ratio.low, ratio.high, ratio.verdict) == (2, 2, 2, "estimated")
    for result in (text, limit, ratio):
        json.dumps(asdict(result), allow_nan=False)


def test_limit_has_the_interval_of_the_mean():
    mean = mean_log_share(np.array([0, 1, 2]), {0: exact(-9), 1: exact(-10), 2: exact(-12)}, name="q")
    limit = cell_limit(100.0, mean)
    assert (limit.low, limit.high) == pytest.approx((100 / -mean.low, 100 / -mean.high))
    wide = mean_log_share(np.array([0, 1]), {0: exact(-1), 1: exact(-30)}, name="q")
    assert wide.high == 0
    assert cell_limit(100.0, wide).high is None


def test_tokens_below_a_limit_make_the_mean_a_bound():
    shares = {0: exact(-10), 1: below(-300), 2: exact(-12)}
    mean = mean_log_share(np.array([0, 1, 1]), shares, name="q")
    assert (mean.verdict, mean.below) == ("at_most", 2)
    assert mean.value == pytest.approx(-610 / 3)
    assert cell_limit(10.0, mean).verdict == "at_most"
    sure = mean_log_share(np.array([0, 2]), shares, name="sure")
    assert slope_ratio(sure, mean).verdict == "at_least"
    assert slope_ratio(mean, sure).verdict == "at_most"
    assert slope_ratio(mean, mean).verdict == "unknown"


def test_only_tokens_below():
    mean = mean_log_share(np.array([1, 1]), {1: below(-300)}, name="q")
    assert (mean.value, mean.se, mean.verdict) == (-300, 0, "at_most")


def test_dropping_unhit_cells_overstates():
    shares = np.exp(np.random.default_rng(0).normal(-12, 4, 5000))
    shares /= shares.sum()
    counts = np.random.default_rng(1).multinomial(20_000, shares)
    found = hit_cells(counts)
    assert (found.draws, found.cells, found.hit) == (20_000, 5000, int((counts > 0).sum()))
    right = mean_log_share(
        np.arange(5000), {i: exact(float(v)) for i, v in enumerate(np.log(shares))}, name="uniform"
    )
    assert found.bias(right) == pytest.approx(found.mean_log_share - np.log(shares).mean())
    assert found.bias(right) > 3
    json.dumps(asdict(found), allow_nan=False)


def test_draws_follow_the_frequencies(rng):
    drawn = draw_unigram(np.array([[3, 3], [3, 7]]), np.array([1, 3, 7]), 4000, rng=rng)
    assert set(drawn.tolist()) == {3, 7}
    assert abs((drawn == 3).mean() - 0.75) < 4 * math.sqrt(0.75 * 0.25 / 4000)


@pytest.mark.parametrize(("ids", "words"), [([], "at least 1 token"), ([3, 8], "id 8")])
def test_bad_text(ids, words, rng):
    with pytest.raises(InputError, match=words):
        draw_unigram(np.array(ids, dtype=int), np.array([3, 4]), 5, rng=rng)


def test_bad_input():
    with pytest.raises(InputError, match="at least 2 drawn"):
        mean_log_share(np.array([1]), {1: exact(-1)}, name="q")
    with pytest.raises(InputError, match="none for id 2"):
        mean_log_share(np.array([1, 2]), {1: exact(-1)}, name="q")
    with pytest.raises(InputError, match=r"\[3, 8\]"):
        mean_log_share(np.array([1, 2]), {1: exact(-1), 2: estimate([-1, -2, -3])}, name="q")
    with pytest.raises(InputError, match="hits"):
        hit_cells(np.zeros(3, dtype=int))
    sure = mean_log_share(np.array([1, 1]), {1: exact(0.0)}, name="q")
    with pytest.raises(InputError, match="cross-entropy"):
        cell_limit(1.0, sure)
    other = mean_log_share(np.array([1, 1]), {1: estimate([-1, -2, -3])}, name="q")
    with pytest.raises(InputError, match="8 and 3 replicates"):
        slope_ratio(mean_log_share(np.array([1, 1]), {1: exact(-1)}, name="q"), other)
