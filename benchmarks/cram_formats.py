"""How far do vectors reach that are held to a set, and by which search? Same strings, same starts.

    python -m benchmarks.cram_formats builtin:random --m 4 --within sign int2 int4 --out random.jsonl
    python -m benchmarks.cram_formats builtin:verse --start-scale 100 --within sign --methods all
    python -m benchmarks.cram_formats SMOLLM2.gguf --start-scale 10000 --max-steps 500 --within sign
    python -m benchmarks.cram_formats builtin:verse --within subspace:32+int4 none --targets text:book.txt

Prints a line for each set, m and method, and with ``--out`` appends a record (`benchmarks.formats_record`)
to a file; what the file holds is not measured again, so the same command goes on after an interruption. Cost
is in model positions per string, 3 for a position stepped forth and back.
"""

import argparse
import math
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from unittest.mock import patch

import numpy as np
import torch
from torch import Tensor

from benchmarks.formats_record import Asked, Record, append, read
from lmreach.config import OptimiserConfig
from lmreach.config.targets import TargetKind
from lmreach.engine.keys import key_seed
from lmreach.engine.provenance import provenance
from lmreach.errors import InputError, LmreachError, problem
from lmreach.experiments.cramming import cram as engine
from lmreach.experiments.cramming.regions import flips
from lmreach.experiments.cramming.regions.base import VectorSet
from lmreach.experiments.cramming.regions.build import held_to
from lmreach.experiments.cramming.regions.grid import Grid
from lmreach.experiments.cramming.rows import Rows
from lmreach.experiments.targets.draw import draw
from lmreach.models.load import load
from lmreach.models.loaded import LoadedModel
from lmreach.models.search_copy import search_copy
from lmreach.results.base import Interval
from lmreach.results.utilisation import utilisation
from lmreach.stats.accessibility import half_length

_SOFT, _HARD = 0.5, 10.0  # slopes of the annealed staircase, first and last
_ROUNDS, _STEPS_OF_A_ROUND = 20, 6  # a round of flips costs about as much as so many steps
_TELL = 30.0  # seconds between lines of progress
USUAL = "straight-through, then flips"


def soften(held: Grid, free: Tensor, slope: Tensor) -> tuple[Tensor, Tensor]:
    """Return coordinates on a smooth staircase through the values, and its derivative."""
    assert held.run_scale is not None, "methods() refuses others"
    units = free / held.run_scale
    # Values are odd, so that steps are centred at even numbers.
    end = held.levels.largest - 1
    centre = (2 * (units / 2).round()).clamp(-end, end)
    rest = slope * (units - centre)
    stairs = centre + torch.tanh(rest) / torch.tanh(slope)
    return stairs * held.run_scale, slope * (1 - torch.tanh(rest) ** 2) / torch.tanh(slope)


def annealed(run_pass: Callable[..., tuple[Tensor, ...]]) -> Callable[..., tuple[Tensor, ...]]:
    """Return a pass that judges rounded vectors but takes the gradient at ever less smoothed ones."""

    def passing(run: engine._Run, rows: Rows, places: Tensor) -> tuple[Tensor, ...]:
        seen = run_pass(run, rows, places)
        held = run._held
        done = (rows.steps[places].float() / run.config.max_steps)[:, None, None]
        soft, slope = soften(held, rows.vectors[places], _SOFT * (_HARD / _SOFT) ** done)
        free = rows.vectors.clone()
        free[places] = soft
        with patch.object(Grid, "settle", lambda _held, given: given):
            *_, grad = run_pass(run, replace(rows, vectors=free), places)
        return *seen[:-1], grad * slope

    return passing


def methods(steps: int) -> dict[str, dict[str, int]]:
    """Return the settings of each method, of about equal cost."""
    whole = steps + _STEPS_OF_A_ROUND * _ROUNDS
    return {
        "straight-through": {"flips": 0, "max_steps": whole},
        USUAL: {"flips": _ROUNDS, "max_steps": steps},
        "annealed": {"flips": 0, "max_steps": whole // 2},
        "flips alone": {"flips": _ROUNDS + steps // _STEPS_OF_A_ROUND, "max_steps": 1},
    }


def check_method(method: str, held: VectorSet) -> None:
    """Refuse a method that a set has no use for: it would repeat the usual one under another name."""
    moves = isinstance(held, Grid) and held.evenly_spaced and held.run_scale is not None
    if method != USUAL and not moves:
        got = f"{method!r} within {held.within.text or 'any float32'}"
        expected = "an evenly spaced format with one scale for the run"
        raise InputError(problem(expected, got, f"leave out --methods: {USUAL!r} serves every set"))


@dataclass
class Teller:
    """Tells on stderr how far a measurement is, every half minute, and adds up what it cost."""

    asked: Asked
    told: float
    spent: float = 0.0

    def step(self, step: engine.StepReport) -> None:
        """Note a step."""
        self.spent += 3 * (2 if self.asked.method == "annealed" else 1) * step.positions
        if time.monotonic() - self.told > _TELL:
            self.told = time.monotonic()
            asked, prefixes = self.asked, sorted(step.prefixes)
            print(
                f"within {asked.optimiser.within or 'float32'}, m {asked.m}: step {step.steps} of "
                f"{asked.optimiser.max_steps}, median prefix {prefixes[len(prefixes) // 2]}",
                file=sys.stderr,
                flush=True,
            )


def crammed(
    model: LoadedModel, search: LoadedModel, ids: np.ndarray, asked: Asked, batch_size: int
) -> tuple[list[engine.CramResult], float]:
    """Return what became of the strings, and the positions they took in all."""
    told, looked = Teller(asked, time.monotonic()), flips._pass

    def counted(loaded: LoadedModel, held: Grid, free: Tensor, own: Tensor, frame: object) -> object:
        told.spent += free.shape[0] * (asked.m + len(own)) * (3 if free.requires_grad else 1)
        return looked(loaded, held, free, own, frame)

    with ExitStack() as stack:
        stack.enter_context(patch.object(flips, "_pass", counted))
        if asked.method == "annealed":
            stack.enter_context(patch.object(engine._Run, "_pass", annealed(engine._Run._pass)))
        found = engine.cram(
            model,
            ids,
            asked.m,
            asked.optimiser,
            generators=[key_seed(f"{i:032x}", asked.optimiser.seed) for i in range(len(ids))],
            batch_size=batch_size,
            search=search,
            on_step=told.step,
        )
    return found, told.spent


def measure(
    model: LoadedModel, search: LoadedModel, ids: np.ndarray, asked: Asked, batch_size: int
) -> Record:
    """Measure one set, m and method."""
    held, facts = held_to(asked.optimiser, model), model.facts
    begun, wall, started = time.process_time(), time.monotonic(), datetime.now(UTC)
    found, spent = crammed(model, search, ids, asked, batch_size)
    reach = np.array([one.reach for one in found])
    n50 = Interval.from_object(half_length(reach, reach >= asked.length, limit=asked.length))
    where = provenance(threads=torch.get_num_threads(), device=str(model.device), started=started)
    return Record(
        asked=asked,
        width=facts.width,
        vocab=facts.usable,
        free=held.free,
        bits=held.bits,
        limit=asked.m * held.log_count / math.log(facts.usable),
        n50=n50,
        utilisation=utilisation(n50, vocab=facts.usable, bits=asked.m * held.bits),
        reaches=tuple(reach.tolist()),
        growth=tuple(one.growth for one in found),
        steps_taken=(min(one.steps for one in found), max(one.steps for one in found)),
        positions_per_string=round(spent / len(found)),
        processor_seconds=round(time.process_time() - begun, 1),
        seconds=round(time.monotonic() - wall, 1),
        threads=torch.get_num_threads(),
        dtype=facts.dtype,
        lmreach=where.lmreach,
        commit=where.git_commit,
        versions=where.versions,
        started=where.started,
    )


def every_asked(model: LoadedModel, words: argparse.Namespace) -> Iterator[Asked]:
    """Give what the command line asks for, one m, set and method after the other."""
    known = methods(words.max_steps)
    if unknown := {*words.methods} - {*known, "all"}:
        raise InputError(problem(f"a method of {', '.join(known)}", f"{min(unknown)!r}", "name one, or all"))
    chosen = {name: how for name, how in known.items() if {name, "all"} & {*words.methods}}
    given = {name: getattr(words, name) for name in ("lr", "lookahead") if getattr(words, name) is not None}
    for m in words.m:
        for within in words.within:
            for method, how in chosen.items():
                optimiser = OptimiserConfig(
                    within=within,
                    start_scale=words.start_scale,
                    seed=words.seed,
                    restarts=words.restarts,
                    patience=how["max_steps"],
                    **given,
                    **how,
                )
                held = held_to(optimiser, model)
                check_method(method, held)
                limit = math.ceil(m * held.log_count / math.log(model.facts.usable)) + 1
                yield Asked(
                    model=model.facts.name,
                    fingerprint=model.facts.fingerprint,
                    m=m,
                    targets=TargetKind.parse(words.targets).label,
                    strings=words.strings,
                    length=min(words.length or 64 * m, limit),
                    method=method,
                    optimiser=optimiser,
                )


def run(words: argparse.Namespace) -> None:
    """Measure what is asked for and not in the file yet."""
    model = load(words.model)
    search = search_copy(model, words.search_dtype).model
    done = {record.asked for record in (read(words.out) if words.out else [])}
    for asked in every_asked(model, words):
        if asked in done:
            print(f"{said(asked)}: in {words.out.name}", flush=True)
            continue
        ids = draw(model, words.targets, asked.strings, asked.length, seed=asked.optimiser.seed).ids
        record = measure(model, search, ids, asked, words.batch_size or asked.strings)
        if words.out:
            append(words.out, record)
        print(f"{said(asked)}: {found(record)}", flush=True)


def said(asked: Asked) -> str:
    """Name a measurement."""
    optimiser = asked.optimiser
    return (
        f"{asked.model}, {asked.targets}, m {asked.m}, within {optimiser.within or 'float32'}, "
        f"{asked.method}, {optimiser.max_steps} steps, start x {optimiser.start_scale:g}"
    )


def found(record: Record) -> str:
    """Say what came of it."""
    n50, part = record.n50, record.utilisation.value
    return (
        f"n50 {n50.words or n50.verdict}; limit {record.limit:.1f}"
        + ("" if part is None else f", utilisation {part:.1%}")
        + f"; reaches {' '.join(map(str, sorted(record.reaches)))}; {record.processor_seconds:g} CPU-s"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model")
    parser.add_argument("--within", nargs="+", required=True, help="sets; none: any float32 vector")
    parser.add_argument("--m", type=int, nargs="+", default=[1])
    parser.add_argument("--methods", nargs="+", default=[USUAL], help="or all")
    parser.add_argument("--targets", default="random")
    parser.add_argument("--strings", type=int, default=16)
    parser.add_argument("--start-scale", type=float, default=1.0)
    parser.add_argument("--max-steps", type=int, default=OptimiserConfig().max_steps)
    parser.add_argument("--restarts", type=int, default=1)
    parser.add_argument("--lr", type=float, help="first step size; none: the default")
    parser.add_argument("--lookahead", type=int, help="tokens of a block; none: the default")
    parser.add_argument("--length", type=int, help="length limit; none: 64 m, or beyond the limit of the set")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--batch-size", type=int, help="rows at once; none: all strings")
    parser.add_argument("--search-dtype", default="float32", help="format of the steps; auto: timed")
    parser.add_argument("--out", type=Path, help="file of records to go on with")
    try:
        run(parser.parse_args())
    except LmreachError as error:
        print(error, file=sys.stderr)
        sys.exit(error.exit_code)


if __name__ == "__main__":
    main()
