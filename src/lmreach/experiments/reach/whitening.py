"""Hidden states at which a token leads: directions of a whitened head, and small exact problems for the rest.

Coordinates. x = (h, 1) times any factor above 0, or x = h where the bias is the same for all tokens and 0
lies in the region: leads f_t - f_s are then linear in x, and a positive multiple of x is as good. The
variance of a score over tokens is x' C x, C the covariance of the (row, bias) pairs, so
x = C^-1 (row_t - mean row) has the largest lead over the mean for its spread, and the shortest x in that
metric that leads every rival by 1 is also likely to lead the tokens it has not been told about.
"""

from dataclasses import dataclass, field

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from lmreach.maths.cells import TIE, least_distance
from lmreach.maths.supports import Box, Ellipsoid

__all__ = ["Lead", "WhiteningFrame", "frame_of"]

_CHUNK = 1 << 14  # rows converted to float64 at once
_RIDGE = 0.01  # in units of a coordinate's variance
_INSIDE = 1 - 1e-6  # states are rounded to float32 and must not leave the region
_PLANES = 64  # sides of a box that are added at once


@dataclass(frozen=True, eq=False)
class WhiteningFrame:
    """A head on a region in coordinates in which its scores have about unit covariance.

    Attributes
    ----------
    rows, offsets
        Shapes (V, d) float32 and (V,) float64. An offset is the bias plus what coordinates that the region
        fixes add.
    region
        Where h may lie.
    live
        Coordinates that matter and can move, shape (k,).
    projective
        Whether x has the factor of the bias as its last coordinate.
    mean, whiten
        Mean of the (row, offset) pairs of ordinary rows over live coordinates, and P with P P' = C^-1;
        x = P y turns whitened y into coordinates. float64, shapes (k,) or (k + 1,) and square.
    """

    rows: Float[Tensor, "V d"]
    offsets: Float[Tensor, " V"]
    region: Box | Ellipsoid
    live: Int[Tensor, " k"]
    projective: bool
    mean: Float[Tensor, " x"]
    whiten: Float[Tensor, "x x"]

    def centred(self, tokens: Int[Tensor, " n"]) -> Float[Tensor, "n x"]:
        """Return (row, offset) minus the mean, float64."""
        return _pairs(self.rows, self.offsets, self.live, self.projective, tokens) - self.mean

    def directions(self, tokens: Int[Tensor, " n"]) -> Float[Tensor, "n x"]:
        """Return the whitened directions C^-1 (row_t - mean)."""
        return self.centred(tokens) @ self.whiten @ self.whiten.T

    def states(self, x: Float[Tensor, "n x"], *, inside: float = _INSIDE) -> Float[Tensor, "n d"]:
        """Return hidden states in the region, float64: as far out as it allows, or exactly those of x.

        With the factor of the bias in x, the state is h = x[:-1] / x[-1], drawn towards the center of the
        region where it lies outside, and on the boundary for a factor of 0 or less. What would be on the
        boundary is drawn in by 1 - ``inside``.
        """
        center, start = self._center(x), torch.zeros(self.rows.shape[1], dtype=torch.float64)
        start[:] = center
        away = torch.zeros(len(x), len(start), dtype=torch.float64)
        if not self.projective:
            start[self.live] = 0.0
            away[:, self.live] = x
            away = _towards_cone(away, self.region)
            return start + away * (inside * _stretch(start, away, self.region))[:, None]
        factor = x[:, -1]
        away[:, self.live] = x[:, :-1] - factor[:, None] * center[self.live]
        wanted = torch.where(factor > 0, 1 / factor.clamp_min(1e-300), torch.inf)
        most = inside * _stretch(start, away, self.region)
        return start + away * torch.minimum(wanted, most)[:, None]

    def fixed_planes(self) -> Float[np.ndarray, "p x"]:
        """Return normals n with n @ x >= 0 that hold from the start."""
        size = len(self.mean)
        if self.projective:
            return np.eye(size)[-1:]
        if isinstance(self.region, Ellipsoid):
            return np.empty((0, size))
        unit, live = np.eye(size), self.live.numpy()
        return np.vstack([unit[self.region.lo[live] == 0], -unit[self.region.hi[live] == 0]])

    def planes(self, x: Float[np.ndarray, " x"]) -> Float[np.ndarray, "p x"]:
        """Return normals n with n @ x >= 0 in the region's cone that this x breaks (none if it is inside)."""
        if not self.projective:
            return np.empty((0, len(x)))
        live, u, factor = self.live.numpy(), x[:-1], x[-1]
        if isinstance(self.region, Ellipsoid):
            axes, center = self.region.axes[live], self.region.center[live]
            inner = (u - factor * center) / axes
            length = float(np.linalg.norm(inner))
            if length <= factor * (1 + 1e-9):
                return np.empty((0, len(x)))
            normal = inner / length
            return np.append(-normal / axes, 1.0 + normal @ (center / axes))[None]
        low, high = self.region.lo[live], self.region.hi[live]
        unit = np.eye(len(u))
        over = np.concatenate([low * factor - u, u - high * factor]) / np.tile(high - low, 2)
        normals = np.vstack([np.column_stack([unit, -low]), np.column_stack([-unit, high])])
        worst = np.argsort(over)[::-1][:_PLANES]
        return np.asarray(normals[worst[over[worst] > 1e-9 * abs(factor)]])

    def _center(self, x: Float[Tensor, "n x"]) -> Float[Tensor, " d"]:
        return torch.from_numpy(np.array(_center(self.region)))


def frame_of(
    rows: Float[Tensor, "V d"],
    bias: Float[Tensor, " V"],
    region: Box | Ellipsoid,
    ordinary: Bool[np.ndarray, " V"],
) -> WhiteningFrame:
    """Whiten a head on a bounded region by its ordinary rows; two passes over them, in float64."""
    center, half = torch.from_numpy(np.array(_center(region))), torch.from_numpy(_half(region))
    varies = (rows != rows[0]).any(dim=0).cpu()
    live = torch.nonzero((half > 0) & varies)[:, 0]
    fixed = torch.nonzero((half == 0) & varies)[:, 0]
    offsets = bias.double().cpu()
    if len(fixed) and bool(center[fixed].any()):
        offsets = offsets + torch.cat(
            [chunk[:, fixed].double() @ center[fixed] for chunk in rows.cpu().split(_CHUNK)]
        )
    projective = bool((offsets != offsets[0]).any()) or not _holds_zero(region, live.numpy())
    mean, covariance = _moments(rows, offsets, live, projective, torch.from_numpy(np.flatnonzero(ordinary)))
    scale = covariance.diagonal().sqrt()
    scale = torch.where(scale > 0, scale, torch.ones_like(scale))
    correlation = covariance / scale / scale[:, None] + _RIDGE * torch.eye(len(scale), dtype=torch.float64)
    factor = torch.linalg.cholesky(correlation)
    whiten = torch.linalg.inv(factor).T / scale[:, None]
    return WhiteningFrame(rows, offsets, region, live, projective, mean, whiten.contiguous())


@dataclass(eq=False)
class Lead:
    """The question whether one token can lead, or at least tie, with the rivals met so far.

    Attributes
    ----------
    token
        Whose lead.
    tie
        False: lead every rival by 1. True: lead the mean of all tokens by 1 and trail no rival by more than
        half of `lmreach.maths.cells.TIE`.
    rivals
        Tokens compared with.
    normals
        Planes of the region, in x.
    """

    token: int
    tie: bool
    rivals: Int[np.ndarray, " r"]
    normals: Float[np.ndarray, "p x"]
    rounds: int = 0
    _leads: Float[np.ndarray, "r x"] = field(default_factory=lambda: np.empty((0, 0)), repr=False)

    def add(self, rivals: Int[np.ndarray, " n"], normals: Float[np.ndarray, "p x"]) -> bool:
        """Take more rivals and planes in; whether any rival is new, or there are planes."""
        new = rivals[~np.isin(rivals, self.rivals)]
        self.rivals = np.concatenate([self.rivals, new])
        self.normals = np.vstack([self.normals, normals])
        return bool(len(new) or len(normals))

    def solve(
        self, frame: WhiteningFrame
    ) -> tuple[Float[np.ndarray, " x"] | None, Float[np.ndarray, " r"], float]:
        """Return the shortest x that answers yes (None: there is none), rivals' weights and the mean's.

        Raises
        ------
        RuntimeError
            If the solver gives up.
        """
        whiten = frame.whiten.numpy()
        count = len(self.rivals)
        leads = self._whitened(frame)
        walls = self.normals @ whiten
        walls = walls / np.linalg.norm(walls, axis=1, keepdims=True)
        parts, offsets = [leads, walls], [np.full(count, -TIE / 2 if self.tie else 1.0), np.zeros(len(walls))]
        if self.tie:
            own = frame.centred(torch.tensor([self.token])).numpy() @ whiten
            parts.append(own)
            offsets.append(np.ones(1))
        y, weights = least_distance(np.vstack(parts), np.concatenate(offsets))
        mean = float(weights[-1]) if self.tie else 0.0
        return (None if y is None else whiten @ y), weights[:count], mean

    def _whitened(self, frame: WhiteningFrame) -> Float[np.ndarray, "r x"]:
        """Return the leads over all rivals as whitened rows; only those of new rivals are computed."""
        known = len(self._leads)
        if known < len(self.rivals):
            new = torch.from_numpy(np.append(self.rivals[known:], self.token))
            pairs = frame.centred(new) @ frame.whiten
            fresh = (pairs[-1] - pairs[:-1]).numpy()
            self._leads = np.vstack([self._leads, fresh]) if known else fresh
        return self._leads


def _pairs(
    rows: Float[Tensor, "V d"],
    offsets: Float[Tensor, " V"],
    live: Int[Tensor, " k"],
    projective: bool,
    tokens: Int[Tensor, " n"],
) -> Float[Tensor, "n x"]:
    chosen = rows[tokens.to(rows.device)].double().cpu()[:, live]
    return torch.cat([chosen, offsets[tokens, None]], dim=1) if projective else chosen


def _moments(
    rows: Float[Tensor, "V d"],
    offsets: Float[Tensor, " V"],
    live: Int[Tensor, " k"],
    projective: bool,
    tokens: Int[Tensor, " n"],
) -> tuple[Float[Tensor, " x"], Float[Tensor, "x x"]]:
    size, count = len(live) + projective, len(tokens)
    total, square = torch.zeros(size, dtype=torch.float64), torch.zeros(size, size, dtype=torch.float64)
    for some in tokens.split(_CHUNK):
        total += _pairs(rows, offsets, live, projective, some).sum(0)
    mean = total / count
    for some in tokens.split(_CHUNK):
        pairs = _pairs(rows, offsets, live, projective, some) - mean
        square += pairs.T @ pairs
    return mean, square / count


def _center(region: Box | Ellipsoid) -> Float[np.ndarray, " d"]:
    return np.asarray((region.lo + region.hi) / 2 if isinstance(region, Box) else region.center)


def _half(region: Box | Ellipsoid) -> Float[np.ndarray, " d"]:
    return np.array((region.hi - region.lo) / 2 if isinstance(region, Box) else region.axes)


def _holds_zero(region: Box | Ellipsoid, live: Int[np.ndarray, " k"]) -> bool:
    """Whether 0 lies in the region as far as live coordinates go; for an ellipsoid, strictly inside."""
    if isinstance(region, Box):
        inside: Bool[np.ndarray, " k"] = (region.lo[live] <= 0) & (region.hi[live] >= 0)
        return bool(inside.all())
    return bool(np.sum((region.center[live] / region.axes[live]) ** 2) < 1)


def _towards_cone(away: Float[Tensor, "n d"], region: Box | Ellipsoid) -> Float[Tensor, "n d"]:
    """Drop what leads out of a box at once where 0 lies on one of its sides."""
    if isinstance(region, Ellipsoid):
        return away
    low, high = torch.from_numpy(np.array(region.lo)), torch.from_numpy(np.array(region.hi))
    away = torch.where((low == 0) & (away < 0), 0.0, away)
    return torch.where((high == 0) & (away > 0), 0.0, away)


def _stretch(
    start: Float[Tensor, " d"], away: Float[Tensor, "n d"], region: Box | Ellipsoid
) -> Float[Tensor, " n"]:
    """Return the largest s with start + s * away in the region (0 for away = 0)."""
    if isinstance(region, Box):
        low, high = torch.from_numpy(np.array(region.lo)), torch.from_numpy(np.array(region.hi))
        room = torch.where(away > 0, high - start, low - start)
        reach = torch.where(away != 0, room / away, torch.inf).amin(dim=1)
    else:
        axes, center = torch.from_numpy(np.array(region.axes)), torch.from_numpy(np.array(region.center))
        thick = axes > 0
        p, q = away[:, thick] / axes[thick], ((start - center) / axes)[thick]
        square, along = p.square().sum(1), p @ q
        reach = (-along + (along.square() + square * (1 - q.square().sum())).sqrt()) / square
    return torch.where((away != 0).any(dim=1), reach, 0.0)
