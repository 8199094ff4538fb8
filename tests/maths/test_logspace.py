"""Log-space functions against mpmath at 50 digits, Monte Carlo volumes and plain quadrature."""

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lmreach.errors import InputError
from lmreach.maths.logspace import log1p_ratio, log_ball_volume, log_cap_share, log_gaussian_integral

mpmath.mp.dps = 50


def exact_log_cap_share(d: int, phi: float) -> mpmath.mpf:
    """ln s_d(phi) at 50 digits, from whichever series of the cap integral converges quickly."""
    angle = mpmath.mpf(phi)
    a, half = mpmath.mpf(d - 1) / 2, mpmath.mpf(1) / 2
    sin, cos = mpmath.sin(angle), abs(mpmath.cos(angle))
    log_beta = mpmath.loggamma(a) + mpmath.loggamma(half) - mpmath.loggamma(a + half)
    if cos**2 < min(0.25, 200 / d):
        # Half a ball less the slice up to the equator; up to 43 of the 150 digits cancel.
        with mpmath.workdps(150):
            sin, cos = mpmath.sin(mpmath.mpf(phi)), abs(mpmath.cos(mpmath.mpf(phi)))
            beta = mpmath.gamma(a) * mpmath.gamma(half) / mpmath.gamma(a + half)
            series = sum_series(a + half, 3 * half, cos**2)
            log_share = mpmath.log((1 - 2 * cos * sin ** (2 * a) / beta * series) / 2)
    else:
        series = sum_series(a + half, a + 1, sin**2)
        log_share = 2 * a * mpmath.log(sin) + mpmath.log(cos / (2 * a)) - log_beta + mpmath.log(series)
    return log_share if angle <= mpmath.pi / 2 else mpmath.log1p(-mpmath.exp(log_share))


def sum_series(b: mpmath.mpf, c: mpmath.mpf, x: mpmath.mpf) -> mpmath.mpf:
    """2F1(1, b; c; x), term by term: all terms are positive."""
    total, term, k = mpmath.mpf(0), mpmath.mpf(1), 0
    while term > total * mpmath.eps or (b + k) * x > c + k:
        total += term
        term *= (b + k) / (c + k) * x
        k += 1
    return total


@pytest.mark.parametrize(
    ("d", "value"),
    [
        (2, 1.14472988585),
        (3, 1.4324119583),
        (341, -513.966717494),
        (342, -515.965915322),
        (640, -1163.35251463),
        (896, -1778.080),
        (4096, -11227.5441662),
    ],
)
def test_ball_volume_has_its_published_value(d: int, value: float) -> None:
    assert log_ball_volume(d) == pytest.approx(value, rel=1e-11 if d != 896 else 1e-6)


def test_ball_volume_of_every_norm() -> None:
    # Cross-polytope: 2^d / d!; cube: 2^d; a point and an interval do not depend on the norm.
    assert log_ball_volume(7, 1.0) == pytest.approx(math.log(2**7 / math.factorial(7)), rel=1e-14)
    assert log_ball_volume(7, math.inf) == pytest.approx(7 * math.log(2), rel=1e-14)
    for p in (1.0, 1.5, 2.0, 3.0, math.inf):
        assert log_ball_volume(0, p) == pytest.approx(0, abs=1e-14)
        assert log_ball_volume(1, p) == pytest.approx(math.log(2), rel=1e-14)


@settings(deadline=None)
@given(
    d=st.integers(1, 65536), p=st.just(math.inf) | st.sampled_from([1.0, 1.5, 2.0, 3.0]) | st.floats(1, 50)
)
def test_ball_volume_agrees_with_mpmath(d: int, p: float) -> None:
    inverse = mpmath.mpf(0) if p == math.inf else 1 / mpmath.mpf(p)
    side = d * (mpmath.log(2) + mpmath.loggamma(1 + inverse))
    exact = side - mpmath.loggamma(1 + d * inverse)
    # Relative to what is subtracted: for some d and p the volume is near 1 and its log near 0.
    assert abs(log_ball_volume(d, p) - exact) <= 1e-13 * max(abs(side), mpmath.loggamma(1 + d * inverse), 1)
    if p in (1.0, 2.0, math.inf) and d > 12:
        assert abs(log_ball_volume(d, p) - exact) <= 1e-10 * abs(exact)


@pytest.mark.parametrize("p", [1.0, 1.5, 2.0, 3.0])
@pytest.mark.parametrize("d", [2, 3, 4, 5, 6])
def test_ball_volume_agrees_with_counting_points(d: int, p: float) -> None:
    rng = np.random.default_rng(d)
    points = 200_000
    inside = (np.abs(rng.uniform(-1, 1, (points, d))) ** p).sum(axis=1) <= 1
    share = math.exp(log_ball_volume(d, p)) / 2**d
    # Four standard errors of a proportion.
    assert abs(inside.mean() - share) < 4 * math.sqrt(share * (1 - share) / points)


@pytest.mark.parametrize("wrong", [{"d": -1}, {"d": 2, "p": 0.5}, {"d": 2, "p": math.nan}])
def test_ball_volume_refuses(wrong: dict[str, float]) -> None:
    with pytest.raises(InputError, match="expected"):
        log_ball_volume(**wrong)


@pytest.mark.parametrize(
    ("d", "phi", "value"),
    [
        (64, 0.5, -49.1839326989),
        (768, 0.2366, -1116.92356223),
        (640, 1.1, -76.9635070706),
        (4096, 1.5, -12.7435903107),
    ],
)
def test_cap_share_has_its_published_value(d: int, phi: float, value: float) -> None:
    assert float(log_cap_share(d, phi)) == pytest.approx(value, rel=1e-11)


WIDTHS = [2, 3, 4, 5, 17, 33, 34, 64, 300, 768, 2049, 4096, 16384, 65536]
ANGLES = [
    *np.geomspace(1e-6, math.pi / 2, 25),
    *(math.pi / 2 - np.geomspace(1e-6, 0.3, 8)),
    *(math.pi / 2 + np.geomspace(1e-6, 0.3, 8)),
    *(math.pi - np.geomspace(1e-6, 1.2, 8)),
]


@pytest.mark.parametrize("d", WIDTHS)
def test_cap_share_agrees_with_mpmath(d: int) -> None:
    found = log_cap_share(d, np.array(ANGLES))
    for phi, value in zip(ANGLES, found.tolist(), strict=True):
        exact = exact_log_cap_share(d, phi)
        assert math.isfinite(value)
        if mpmath.fabs(exact) > 1e-300:  # below that the answer is 0 in float64
            assert abs(value - exact) <= 1e-10 * abs(exact), (d, phi)


@settings(deadline=None)
@given(
    # Widths and angles at which the cap changes on every scale, from an edge of the range to the other.
    d=st.integers(2, 40) | st.floats(0, 1).map(lambda t: round(2 * 32768**t)),
    phi=st.floats(1e-6, math.pi)
    | st.floats(-6, math.log10(math.pi)).map(lambda t: min(10**t, math.pi))
    | st.tuples(st.floats(-6, 0), st.sampled_from([-1, 1])).map(lambda t: math.pi / 2 + t[1] * 10 ** t[0]),
)
def test_cap_share_agrees_with_mpmath_anywhere(d: int, phi: float) -> None:
    exact, value = exact_log_cap_share(d, phi), float(log_cap_share(d, phi))
    assert math.isfinite(value)
    assert mpmath.fabs(exact) <= 1e-300 or abs(value - exact) <= 1e-10 * abs(exact)


@settings(deadline=None)
@given(
    d=st.integers(2, 65536),
    phi=st.floats(1e-6, math.pi, exclude_max=True),
    factor=st.floats(0.5, 1),
)
def test_cap_share_laws(d: int, phi: float, factor: float) -> None:
    share = float(log_cap_share(d, phi))
    assert -math.inf < share <= 0
    assert float(log_cap_share(d, max(1e-6, phi * factor))) <= share + 1e-12 * abs(share)
    opposite = float(log_cap_share(d, math.pi - phi)) if phi < math.pi - 1e-6 else -math.inf
    assert np.logaddexp(share, opposite) == pytest.approx(0, abs=1e-9)


def test_cap_share_in_the_plane_is_the_angle() -> None:
    angles = np.linspace(1e-6, math.pi, 101)
    assert log_cap_share(2, angles) == pytest.approx(np.log(angles / math.pi), rel=1e-10, abs=1e-15)


@pytest.mark.parametrize("d", [2, 3, 4, 5, 6])
def test_cap_share_agrees_with_counting_directions(d: int) -> None:
    rng = np.random.default_rng(d)
    points = 200_000
    directions = rng.normal(size=(points, d))
    cosines = directions[:, 0] / np.linalg.norm(directions, axis=1)
    for phi in (0.4, 1.0, 1.7, 2.6):
        share = math.exp(float(log_cap_share(d, phi)))
        assert abs((cosines >= math.cos(phi)).mean() - share) < 4 * math.sqrt(share * (1 - share) / points)


def test_cap_share_takes_arrays_of_any_shape() -> None:
    both = log_cap_share(np.array([[8], [16]]), np.array([0.5, 1.0, 2.0]))
    assert both.shape == (2, 3)
    assert both[1, 2] == log_cap_share(16, 2.0)


def test_many_cap_shares_at_once() -> None:
    rng = np.random.default_rng(0)
    found = log_cap_share(rng.integers(2, 65537, 100_000), rng.uniform(1e-6, math.pi, 100_000))
    assert np.isfinite(found).all()


@pytest.mark.parametrize(
    ("d", "phi"), [(1, 0.5), (8, 0.0), (8, -1.0), (8, 3.2), (8, math.nan), (math.nan, 1.0)]
)
def test_cap_share_refuses(d: float, phi: float) -> None:
    with pytest.raises(InputError, match="expected"):
        log_cap_share(d, phi)


@settings(deadline=None)
@given(
    start=st.floats(-40, 40),
    width=st.floats(1e-12, 80),
)
def test_gaussian_integral_agrees_with_mpmath(start: float, width: float) -> None:
    lo, hi = np.array([start]), np.array([start + width])
    if not lo[0] < hi[0]:
        return
    with mpmath.workdps(60):
        low, high = mpmath.mpf(float(lo[0])), mpmath.mpf(float(hi[0]))
        exact = mpmath.log(mpmath.sqrt(mpmath.pi) / 2 * (mpmath.erfc(low) - mpmath.erfc(high)))
        if low > 0 or high < 0:
            near, far = sorted((abs(low), abs(high)))
            exact = mpmath.log(mpmath.sqrt(mpmath.pi) / 2 * (mpmath.erfc(near) - mpmath.erfc(far)))
    value = float(log_gaussian_integral(lo, hi)[0])
    assert value == pytest.approx(float(exact), rel=1e-11, abs=1e-11)


def test_gaussian_integral_far_out_stays_finite() -> None:
    lo = np.array([1e3, -2e5, 30.0, -1e-9])
    hi = np.array([2e3, -1e5, 30.0 + 1e-9, 1e9])
    assert np.isfinite(log_gaussian_integral(lo, hi)).all()


@settings(deadline=None)
@given(top=st.floats(0, 1e300), bottom=st.floats(1e-300, 1e300))
def test_log1p_ratio_agrees_with_mpmath(top: float, bottom: float) -> None:
    exact = float(mpmath.log1p(mpmath.mpf(top) / mpmath.mpf(bottom)))
    assert float(log1p_ratio(top, bottom)) == pytest.approx(exact, rel=1e-13, abs=1e-307)
