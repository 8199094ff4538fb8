"""How far do other objectives, starts, step sizes and optimisers reach? Same strings, same seeds of starts.

    python -m benchmarks.cram_reach builtin:random --m 4 --strings 64
    python -m benchmarks.cram_reach builtin:verse --m 1 --strings 64 --only "default" "lr 1"
    python -m benchmarks.cram_reach SMOLLM2.gguf --start-scale 10000 --max-steps 100 --search-dtype bfloat16

The engine runs as it is; a variant replaces its loss, its starts or its step, or changes settings. `default`
is the engine's own. Cost is in model positions per string, 3 for a position stepped forth and back. Prints
one JSON line each.
"""

import argparse
import json
import time
from collections.abc import Callable
from contextlib import ExitStack
from unittest.mock import patch

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import softplus

from lmreach.config import OptimiserConfig
from lmreach.engine.keys import key_seed
from lmreach.experiments.cramming import cram as engine
from lmreach.experiments.cramming import frontier
from lmreach.experiments.cramming.rows import Rows, _unit
from lmreach.experiments.cramming.scoring import Score, leading
from lmreach.experiments.targets.draw import draw
from lmreach.models.load import load
from lmreach.models.loaded import LoadedModel
from lmreach.models.search_copy import search_copy
from lmreach.results import Interval
from lmreach.stats.accessibility import half_length

# Loss of a position from: lead of the target over the log-sum of the rest, its margin over the largest of the
# rest, whether it is the argmax, and whether it stands behind the first miss.
Loss = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]

OBJECTIVES: dict[str, Loss] = {
    "cross-entropy": lambda lead, margin, hit, behind: softplus(-lead),
    "unsolved x 3": lambda lead, margin, hit, behind: softplus(-lead) * torch.where(hit, 1.0, 3.0),
    "unsolved x 6": lambda lead, margin, hit, behind: softplus(-lead) * torch.where(hit, 1.0, 6.0),
    "unsolved x 12": lambda lead, margin, hit, behind: softplus(-lead) * torch.where(hit, 1.0, 12.0),
    "unsolved x 50": lambda lead, margin, hit, behind: softplus(-lead) * torch.where(hit, 1.0, 50.0),
    "first miss x 3": lambda lead, margin, hit, behind: softplus(-lead) * torch.where(hit | behind, 1.0, 3.0),
    "behind the first miss x 0.3": lambda lead, margin, hit, behind: (
        softplus(-lead) * torch.where(behind, 0.3, 1.0)
    ),
    "margin below 0.1": lambda lead, margin, hit, behind: (0.1 - margin).clamp(min=0),
    "margin below 1": lambda lead, margin, hit, behind: (1.0 - margin).clamp(min=0),
    "margin below 3": lambda lead, margin, hit, behind: (3.0 - margin).clamp(min=0),
    "squared cross-entropy": lambda lead, margin, hit, behind: softplus(-lead) ** 2,
    "nothing from leads over 2": lambda lead, margin, hit, behind: softplus(-lead) * (lead.detach() < 2),
    "cross-entropy with lead 3": lambda lead, margin, hit, behind: softplus(3 - lead),
}
SETTINGS: dict[str, dict[str, object]] = {
    "lr 0.25": {"lr": 0.25},
    "lr 1": {"lr": 1.0},
    "lr 2": {"lr": 2.0},
    "unsolved x 1 to 12": {"unsolved_weight": 1.0},
    "unsolved x 2 to 30": {"unsolved_weight_end": 30.0},
    "lr_end 0.01": {"lr_end": 0.01},
    "lr_end 0.1": {"lr_end": 0.1},
    "no decay": {"lr_end": 0.5},
    "betas 0.5, 0.9": {"beta1": 0.5},
    "betas 0.9, 0.99": {"beta1": 0.9, "beta2": 0.99},
    "betas 0.9, 0.9": {"beta1": 0.9},
    "blocks of 4": {"lookahead": 4},
    "blocks of 8": {"lookahead": 8},
    "blocks of 16": {"lookahead": 16},
    "blocks of 32": {"lookahead": 32},
    "blocks of 48": {"lookahead": 48},
    "blocks of 72": {"lookahead": 72},
    "start x 1": {"start_scale": 1.0},
    "start x 10": {"start_scale": 10.0},
    "start x 100": {"start_scale": 100.0},
    "start x 10,000": {"start_scale": 1e4},
    "100 steps": {"max_steps": 100},
    "1,000 steps": {"max_steps": 1000, "patience": 500},
    "3 restarts": {"restarts": 3},
}


def with_loss(loss: Loss) -> Callable[..., Score]:
    """Return a stand-in for the engine's `score` that holds all logits: right for small vocabularies."""

    def score(
        model: LoadedModel,
        hidden: Tensor,
        ids: Tensor,
        scored: Tensor,
        *,
        slack: float = 0.0,
        **_kept: object,
    ) -> Score:
        leaf = hidden.detach().requires_grad_(True)
        logits = model.head_logits(leaf)
        own = logits.gather(-1, ids[..., None])[..., 0]
        rest = logits.scatter(-1, ids[..., None], float("-inf"))
        lead, margin = own - rest.logsumexp(-1), own - rest.amax(-1)
        hit = (margin.detach() > 0) & scored
        prefix = leading(hit)
        behind = torch.arange(ids.shape[1]) > prefix[:, None]
        share = scored / scored.sum(dim=1, keepdim=True)
        (grad,) = torch.autograd.grad((loss(lead, margin, hit, behind) * share).sum(), leaf)
        plain = (softplus(-lead.detach()) * share).sum(dim=1)
        near = scored & (margin.detach() >= -slack * logits.detach().amax(-1).abs())
        return Score(plain, prefix, leading(near | hit), hit.sum(dim=1), grad)

    return score


def gaussian_start(run: engine._Run, index: int) -> Tensor:
    """Start at normal vectors as long as real inputs."""
    noise = run.generators[index].standard_normal((run.m, run.model.facts.width), dtype=np.float32)
    return run.model.input_rms * torch.from_numpy(noise)


def table_start(run: engine._Run, index: int) -> Tensor:
    """Start as the published code does: normal, as wide as the raw table."""
    noise = run.generators[index].standard_normal((run.m, run.model.facts.width), dtype=np.float32)
    table = run.model.wiring.embed.weight
    return float(table.detach().float().std()) * torch.from_numpy(noise)


def mean_start(run: engine._Run, index: int) -> Tensor:
    """Start at the mean of real inputs, the same for every string."""
    mean = run.model.input_vectors(torch.as_tensor(run.model.plain_ids)).mean(dim=0)
    return mean.expand(run.m, -1).clone()


STARTS = {
    "normal, as real inputs": gaussian_start,
    "normal, as the raw table": table_start,
    "mean input": mean_start,
}


def plain_adam(rows: Rows, grad: Tensor, rate: Tensor, beta1: float, beta2: float) -> None:
    """Step as Adam does: gradients with their sizes, no Nesterov look-ahead."""
    rows.steps += 1
    rows.moment1.lerp_(grad, 1 - beta1)
    rows.moment2.lerp_(grad * grad, 1 - beta2)
    count = rows.steps.float()[:, None, None]
    first, second = rows.moment1 / (1 - beta1**count), rows.moment2 / (1 - beta2**count)
    rows.vectors = rows.vectors - rate[:, None, None] * first / (second.sqrt() + 1e-12)


def unit_adam(rows: Rows, grad: Tensor, rate: Tensor, beta1: float, beta2: float) -> None:
    """Step as Adam does along unit gradients."""
    plain_adam(rows, _unit(grad), rate, beta1, beta2)


def one_rate(rows: Rows, grad: Tensor, rate: Tensor, beta1: float, beta2: float) -> None:
    """Step with momentum along unit gradients, every coordinate at the same rate."""
    rows.steps += 1
    rows.moment1.lerp_(_unit(grad), 1 - beta1)
    rows.vectors = rows.vectors - rate[:, None, None] * rows.moment1 / (
        1 - beta1 ** rows.steps.float()[:, None, None]
    )


_DESCEND = Rows.descend


def on_spheres(rows: Rows, grad: Tensor, rate: Tensor, beta1: float, beta2: float) -> None:
    """Step as the engine does, then give every vector its length back."""
    length = rows.vectors.norm(dim=-1, keepdim=True)
    _DESCEND(rows, grad, rate, beta1, beta2)
    rows.vectors = rows.vectors * length / rows.vectors.norm(dim=-1, keepdim=True)


def back_to_best(rows: Rows, grad: Tensor, rate: Tensor, beta1: float, beta2: float) -> None:
    """Step as the engine does, and every 30 steps without growth go back to the best iterate."""
    _DESCEND(rows, grad, rate, beta1, beta2)
    idle = rows.steps - rows.grown_at
    back = (idle > 0) & (idle % 30 == 0)
    rows.vectors = torch.where(back[:, None, None], rows.best_vectors, rows.vectors)


def noisy(rows: Rows, grad: Tensor, rate: Tensor, beta1: float, beta2: float) -> None:
    """Step as the engine does, with normal noise a tenth as large as the step."""
    _DESCEND(rows, grad, rate, beta1, beta2)
    noise = torch.from_numpy(NOISE.standard_normal(rows.vectors.shape, dtype=np.float32))
    rows.vectors = rows.vectors + 0.1 * rate[:, None, None] * noise


NOISE = np.random.default_rng(0)
STEPS = {
    "Adam, gradients with their sizes": plain_adam,
    "Adam, unit gradients": unit_adam,
    "momentum, unit gradients, one rate for all coordinates": one_rate,
    "on spheres": on_spheres,
    "back to the best iterate": back_to_best,
    "noise": noisy,
}


def warm_start(
    model: LoadedModel, search: LoadedModel, m: int, n: int, base: OptimiserConfig
) -> Callable[..., Tensor]:
    """Start at what 16 other strings ended with after 60 steps."""
    others = draw(model, "random", 16, n, seed=77).ids
    found = engine.cram(
        model,
        others,
        m,
        base.model_copy(update={"max_steps": 60}),
        generators=[key_seed(f"{i:032x}", 77) for i in range(16)],
        batch_size=16,
        search=search,
    )

    def start(run: engine._Run, index: int) -> Tensor:
        return torch.from_numpy(found[run.generators[index].integers(16)].vectors.copy())

    return start


def measure(
    model: LoadedModel, search: LoadedModel, ids: np.ndarray, m: int, config: OptimiserConfig
) -> tuple[np.ndarray, float]:
    """Return reaches and positions per string."""
    positions: list[int] = []
    found = engine.cram(
        model,
        ids,
        m,
        config,
        generators=[key_seed(f"{i:032x}", 0) for i in range(len(ids))],
        batch_size=len(ids),
        search=search,
        on_step=lambda step: positions.append(step.positions),
    )
    return np.array([one.reach for one in found]), 3 * sum(positions) / len(ids)


def gauss_newton(model: LoadedModel, ids: np.ndarray, m: int, most: float) -> tuple[np.ndarray, float]:
    """Damped Gauss-Newton steps on the leads (m d unknowns, one equation a token), with a line search.

    All f gradients of a row are taken, f its frontier, so a step costs about f passes back. It ends when
    ``most`` positions a string are spent.
    """
    targets, count = torch.from_numpy(ids), len(ids)
    draws = [key_seed(f"{i:032x}", 0).choice(model.plain_ids, size=m) for i in range(count)]
    vectors = torch.stack([model.input_vectors(torch.from_numpy(one)) for one in draws])
    best, damping, cost = torch.zeros(count, dtype=torch.long), torch.full((count,), 0.1), 0.0

    def leads(at: Tensor, width: int) -> tuple[Tensor, Tensor]:
        inputs = torch.cat([at, model.input_vectors(targets[:, : width - 1])], dim=1)
        logits = model.head_logits(model.hidden(inputs)[:, m - 1 :]).float()
        wanted = targets[:, :width, None]
        own, rest = logits.gather(-1, wanted)[..., 0], logits.scatter(-1, wanted, float("-inf"))
        return own - rest.logsumexp(-1), own > rest.amax(-1)

    while cost < most:
        width = int(best.max()) + 1
        on = torch.arange(width) < best[:, None] + 1
        leaf = vectors.requires_grad_(True)
        lead, _ = leads(leaf, width)
        rows = [torch.autograd.grad(lead[:, i].sum(), leaf, retain_graph=True)[0] for i in range(width)]
        slopes = torch.stack(rows, dim=1).flatten(2) * on[..., None]
        cost += (m + width) + 2 * sum(m + i for i in range(width))
        with torch.no_grad():
            wanted = (0.5 - lead).clamp(min=0, max=5) * on
            products = slopes @ slopes.transpose(1, 2)
            level = products.diagonal(dim1=1, dim2=2).sum(dim=1) / on.sum(dim=1)
            ridge = (damping * level)[:, None] + (~on).float()
            answer = torch.linalg.solve(products + torch.diag_embed(ridge), wanted[..., None])
            move = (slopes.transpose(1, 2) @ answer).reshape(vectors.shape)
            room = 0.5 * vectors.square().mean(dim=(1, 2)).sqrt() / move.square().mean(dim=(1, 2)).sqrt()
            move = move * room.clamp(max=1.0)[:, None, None]
            tried = [leads(vectors + part * move, width) for part in (1.0, 0.5, 0.2)]
            cost += 3 * (m + width)
            losses = torch.stack([(softplus(-one) * on).sum(dim=1) for one, _ in tried])
            better = losses.min(dim=0).values < (softplus(-lead) * on).sum(dim=1)
            which = losses.argmin(dim=0)
            damping = torch.where(
                better & (which == 0), 0.7 * damping, torch.where(better, damping, 2 * damping)
            )
            vectors = vectors.detach() + torch.tensor([1.0, 0.5, 0.2])[which][:, None, None] * move
            best = torch.maximum(best, torch.stack([leading(hit & on) for _, hit in tried]).amax(dim=0))
    return best.numpy(), cost


def variants(
    model: LoadedModel, search: LoadedModel, ids: np.ndarray, m: int, base: OptimiserConfig, newton: float
) -> dict[str, Callable[[], object]]:
    """Return what can be run, by name; ``newton`` positions a string for second-order steps."""

    def plain(**change: object) -> Callable[[], object]:
        return lambda: measure(model, search, ids, m, base.model_copy(update=change))

    def patched(where: object, name: str, what: object) -> Callable[[], object]:
        def run() -> object:
            with ExitStack() as stack:
                stack.enter_context(patch.object(where, name, what))
                return measure(model, search, ids, m, base)

        return run

    found = {"default": plain()}
    found |= {
        f"objective: {name}": patched(engine, "score", with_loss(loss)) for name, loss in OBJECTIVES.items()
    }
    found |= {f"start: {name}": patched(engine._Run, "_start_vectors", how) for name, how in STARTS.items()}
    found |= {f"step: {name}": patched(Rows, "descend", how) for name, how in STEPS.items()}

    def warm() -> object:
        return patched(engine._Run, "_start_vectors", warm_start(model, search, m, ids.shape[1], base))()

    found["start: solutions of other strings"] = warm
    found |= {name: plain(**change) for name, change in SETTINGS.items()}
    found["2 starts of half the steps"] = plain(restarts=2, max_steps=base.max_steps // 2)
    found["next block when the last is emitted"] = patched(frontier, "_WON", 2.0)
    found["second order: Gauss-Newton"] = lambda: gauss_newton(search, ids, m, newton)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model")
    parser.add_argument("--m", type=int, default=1)
    parser.add_argument("--targets", default="random")
    parser.add_argument("--strings", type=int, default=64)
    parser.add_argument("--start-scale", type=float, default=1.0)
    parser.add_argument("--max-steps", type=int, default=OptimiserConfig().max_steps)
    parser.add_argument("--search-dtype", default="auto", help="number format of the steps")
    parser.add_argument("--newton-positions", type=float, default=15_000, help="for second-order steps")
    parser.add_argument("--only", nargs="*", help="names to run; default: all")
    words = parser.parse_args()
    model = load(words.model)
    ids = draw(model, words.targets, words.strings, 64 * words.m, seed=0).ids
    base = OptimiserConfig(start_scale=words.start_scale, max_steps=words.max_steps)
    search = search_copy(model, words.search_dtype).model
    for name, run in variants(model, search, ids, words.m, base, words.newton_positions).items():
        if words.only and name not in words.only:
            continue
        begun = time.process_time()
        reach, cost = run()
        n50 = half_length(reach, reach >= ids.shape[1], limit=ids.shape[1])
        print(
            json.dumps(
                {
                    "model": model.facts.name,
                    "m": words.m,
                    "targets": words.targets,
                    "strings": words.strings,
                    "max_steps": words.max_steps,
                    "start_scale": words.start_scale,
                    "steps_in": str(search.dtype).removeprefix("torch."),
                    "variant": name,
                    "n50": Interval.from_object(n50).model_dump(),
                    "mean_reach": round(float(reach.mean()), 2),
                    "standard_error": round(float(reach.std() / len(reach) ** 0.5), 2),
                    "positions_per_string": round(cost),
                    "processor_seconds": round(time.process_time() - begun, 1),
                    "threads": torch.get_num_threads(),
                }
            ),
            flush=True,
        )


if __name__ == "__main__":
    main()
