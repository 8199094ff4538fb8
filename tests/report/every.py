"""Results that fill every field: one of each kind of run, and a study at single lengths."""

import numpy as np

from lmreach.results import AnyResults, ReachabilityResults, StudyResults
from lmreach.results.answers import Tried
from lmreach.results.copying import Copying
from lmreach.results.study import Accessibility
from lmreach.runs.study.accessibility import point_parts
from lmreach.stats.points import point_curve

from . import cells_sample, census_sample, copy_sample, sample

MORE = {
    "accessibility.0.prefix": "Say",
    "accessibility.0.suffix": "now",
    "accessibility.0.within": "the box of real inputs",
    "model.soft_cap": 30.0,
    "model.revision": "0123456789",
    "provenance.git_commit": "0123456789ab",
    "provenance.target_files": {"text:a.txt": "00"},
}
NOTE = "published protocol, for comparison: the first token is given, so n means n - 1 predicted tokens"


def study() -> StudyResults:
    """A study with every section."""
    sections = {
        "cells": cells_sample.cells(),
        "census": census_sample.census(),
        "copying": copy_sample.copying("separated"),
    }
    return sample.known_well().model_copy(update=sections)


def study_at_lengths(
    middle: float = 20, protocol: str = "fixed", lengths: tuple[int, ...] = (8, 16, 24, 32)
) -> StudyResults:
    """A study whose records come from single lengths."""
    results = sample.study()
    own = [entry for entry in results.accessibility if entry.m < 4]
    return results.model_copy(
        update={"accessibility": tuple(at_lengths(one, middle, protocol, lengths) for one in own)}
    )


def at_lengths(entry: Accessibility, middle: float, protocol: str, lengths: tuple[int, ...]) -> Accessibility:
    scale = entry.m * middle / 20
    reach = np.random.default_rng(entry.m).normal(20 * scale, 4 * scale, 12)
    found = point_curve([{n * entry.m: bool(r >= n * entry.m) for n in lengths} for r in reach])
    change = {
        "protocol": protocol,
        "protocol_note": NOTE if protocol == "published" else "",
        "limit": int(found.n[-1]),
        "trials": int(found.tried.sum()),
        "solved": int(found.reached.sum()),
        "decoded": int(found.reached.sum()) - 1,
        "reaches": (),
        "censored": (),
        "curve": None,
    }
    return entry.model_copy(update={**change, **point_parts(found)})


def separated() -> Accessibility:
    """An entry whose strings all reach one length and none the next."""
    entry = sample.study().accessibility[0]
    found = point_curve([{8: True, 16: False}] * 6)
    parts = point_parts(found)
    parts["fit"] = parts["fit"].model_copy(update={"fits": 0.4})
    return at_lengths(entry, 20, "fixed", (8, 16)).model_copy(update={**parts, "limit": 16})


def fine_tuned() -> Copying:
    """A model that was fine-tuned on an n-gram task, and asked for letters that it has not seen."""
    unseen = {"tested": 28, "unseen": 2, "unseen_letters": ("y", "z")}
    section = copy_sample.copying("separated")
    told = {"kind": None, "parent": "some-model", "task": "prefix_ngram", "reached": False}
    change = {
        "finished": False,
        "training": copy_sample.training().model_copy(update=told),
        "alphabet": section.alphabet.model_copy(update=unseen),
        "checked": section.checked and section.checked.model_copy(update={"same": 1}),
    }
    return section.model_copy(update=change)


def answered() -> ReachabilityResults:
    """A text that was found to come out, after a search."""
    asked = sample.study()
    return ReachabilityResults(
        model=asked.model,
        config={"text": "so", "m": [1, 2]},
        provenance=asked.provenance,
        not_done=asked.not_done,
        verdict="yes",
        reason="greedy decoding emits it from 2 vectors found by optimisation, confirmed step by step",
        ids=(5, 9, 3),
        tokens=3,
        m=2,
        bos="none",
        smallest_gap=0.4,
        tried=(Tried(m=1, longest_start=2), Tried(m=2, longest_start=3)),
        seconds=1.5,
        certificate="certificates/0123.safetensors",
    )


def runs() -> list[AnyResults]:
    """One of each kind, and what else has fields of its own."""
    lengths = study_at_lengths(protocol="published", lengths=(8, 12, 16, 20, 24, 28, 32, 36))
    entries = (separated(), *lengths.accessibility)
    grids = (census_sample.grid(1, 8), census_sample.sketched())
    counted = census_sample.run()
    return [
        sample.changed(study(), MORE),
        lengths.model_copy(update={"accessibility": entries}),
        sample.without_answers("above_limit"),
        counted.model_copy(update={"not_done": sample.study().not_done}),
        counted.model_copy(update={"census": counted.census.model_copy(update={"grids": grids})}),
        copy_sample.run(),
        copy_sample.run(fine_tuned()),
        copy_sample.run(copy_sample.zero_shot()),
        answered(),
    ]
