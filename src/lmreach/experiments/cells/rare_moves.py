"""Elliptical slice moves of many particles inside the cell of one token, on the CPU or a GPU.

A particle u ~ N(0, I_h) is in the cell at some level when D u + b > level in every row, one row per rival of
the token. A move costs two products with D in full space. Here u is moved inside a random subspace instead,
the rest of it held (a Gibbs step, exact for any subspace drawn apart from u): the products then involve
``min(h, 64)`` columns, and in the narrow cells of real models, where angles are small, a move gets as far.
"""

import math
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

SUBSPACE = 64  # columns; measured against 32 and 128 on SmolLM2
MOVES_PER_SUBSPACE = 4
_BLOCK = 1 << 18  # numbers per temporary array: they should stay in cache
_INSIDE = 1e-9  # smallest distance to a constraint, where rounding left none


def move(
    u: Float[Tensor, "n h"],
    rows: Float[Tensor, "k h"],
    offset: Float[Tensor, " k"],
    blocks: int,
    generator: torch.Generator,
) -> tuple[Float[Tensor, "n h"], Float[Tensor, " n"]]:
    """Move particles inside rows u + offset > 0, where they are now.

    Parameters
    ----------
    blocks
        Subspaces visited, with `MOVES_PER_SUBSPACE` moves in each.

    Returns
    -------
    u, margins
        The moved particles, and the least of rows u + offset for each.
    """
    n, h = u.shape
    width = min(h, SUBSPACE)
    like: dict[str, Any] = {"generator": generator, "device": u.device}
    plan = []
    for _ in range(blocks):
        basis = torch.linalg.qr(torch.randn(h, width, **like)).Q
        steps = torch.randn(MOVES_PER_SUBSPACE, n, width, **like)
        plan.append((basis, rows @ basis, steps, torch.rand(MOVES_PER_SUBSPACE, n, **like)))
    moved, margins = torch.empty_like(u), u.new_empty(n)
    size = max(1, _BLOCK // len(rows))
    for i in range(0, n, size):
        at = slice(i, i + size)
        part = u[at]
        ahead = torch.addmm(offset, part, rows.T)
        for basis, seen, steps, uniforms in plan:
            inner = part @ basis
            rest = torch.addmm(part, inner, basis.T, alpha=-1)
            inner = _walk(inner, seen, ahead, steps[:, at], uniforms[:, at])
            part = torch.addmm(rest, inner, basis.T)
        moved[at], margins[at] = part, ahead.amin(1)
    return moved, margins


def _walk(
    w: Float[Tensor, "n s"],
    rows: Float[Tensor, "k s"],
    ahead: Float[Tensor, "n k"],
    steps: Float[Tensor, "m n s"],
    uniforms: Float[Tensor, "m n"],
) -> Float[Tensor, "n s"]:
    """Make one elliptical move of w per step, keeping ``ahead``, which is updated in place, above 0."""
    x = w @ rows.T
    held = ahead.sub_(x)
    for step, uniform in zip(steps, uniforms, strict=True):
        towards = step @ rows.T
        back, forth = arc(x, towards, held)
        angle = torch.lerp(back, forth, uniform)[:, None]
        cos, sin = angle.cos(), angle.sin()
        x.mul_(cos).addcmul_(towards, sin)
        w = w * cos + step * sin
    ahead.add_(x)
    return w


def arc(
    x: Float[Tensor, "n k"], towards: Float[Tensor, "n k"], held: Float[Tensor, "n k"]
) -> tuple[Float[Tensor, " n"], Float[Tensor, " n"]]:
    """Return the ends of the arc around angle 0 on which x cos(t) + towards sin(t) + held > 0 everywhere.

    With q = 1 / tan(t / 2) a constraint ends where (x + held) q^2 + 2 towards q + (held - x) = 0: its largest
    root is the first end met in the positive direction, minus its smallest root the same in the negative one.
    Only this arc is drawn from, not others the ellipse may have: uniform on the arc that holds the particle
    leaves the target unchanged too, and needs no sorting. Without any end the arc is the circle, twice over.
    """
    slack = (x + held).clamp_min_(_INSIDE)
    square = torch.addcmul((x - held).mul_(slack), towards, towards)
    root = square.clamp_min(0).sqrt_().masked_fill_(square < 0, -math.inf)
    forth = (root - towards).div_(slack).amax(1)
    back = root.add_(towards).div_(slack).amax(1)
    one = torch.ones_like(forth)
    return -2 * torch.atan2(one, back), 2 * torch.atan2(one, forth)
