"""Results invented for the tests, built from the models of `lmreach.results`.

It is no recorded measurement: no number in it was measured.
"""

import math
from typing import Any, TypeVar

import numpy as np

from lmreach.results import CensusResults, CopyResults, Interval, ReachabilityResults, StudyResults, parse
from lmreach.results.base import Columns
from lmreach.results.limits import Limit
from lmreach.results.run import Model, NotDone, Provenance
from lmreach.results.study import (
    Accessibility,
    BySteps,
    Cliff,
    EndedEarly,
    Example,
    Extent,
    Extrapolated,
    Information,
    Known,
    Level,
    Precision,
    Ratio,
    SearchRecord,
    Slope,
    StartProbe,
    Support,
)

Results = TypeVar("Results", StudyResults, CensusResults, CopyResults, ReachabilityResults)
WIDTH, ROWS, USABLE, LIMIT = 256, 1024, 1000, 128
SPREAD = 0.35
SLOPES = {"random": 2.6, "self": 4.9}
COUNTS = (1, 2, 4, 8, 16)


def changed(results: Results, changes: dict[str, Any]) -> Results:
    """Return results with other values at some places, such as ``accessibility.0.n50.value``; read anew."""
    raw = results.model_dump(mode="json")
    for path, value in changes.items():
        *way, last = path.split(".")
        place: Any = raw
        for step in way:
            place = place[int(step)] if isinstance(place, list) else place[step]
        place[int(last) if isinstance(place, list) else last] = value
    found = parse(raw)
    assert isinstance(found, type(results))
    return found


def study() -> StudyResults:
    """A study with two target kinds at five values of m; no precision, cells, census or copying."""
    rng = np.random.default_rng(7)
    limits = _limits()
    measured = [_measured(rng, target, m, limits) for target in SLOPES for m in COUNTS]
    return StudyResults(
        model=_model(),
        config={
            "model": "builtin:verse",
            "budget_s": 300.0,
            "m": list(COUNTS),
            "targets": list(SLOPES),
            "cram": {"protocol": "frontier", "strings": 32, "max_steps": 600, "lr": 1.0, "n_max": None},
        },
        limits=tuple(limits),
        support=Support(
            samples=4096,
            prompt_lengths=(4, 16, 64),
            kinds=("random", "self"),
            l1_max=402.1,
            l2_max=31.7,
            linf_max=9.44,
            mean_cos=0.213,
            min_cos=-0.41,
            min_cos_states=4096,
            min_cos_bound=-0.41,
            inside_norm_ellipsoid=True,
            largest_ellipsoid_fraction=0.982,
        ),
        accessibility=tuple(measured),
        slopes=tuple(_slope(target, measured, limits) for target in SLOPES),
        examples=(
            _example("self", 1, 7, "The quality of mercy", "The quality of mercy"),
            _example("self", 4, 19, "And yet,\n  by heaven, I think", "And yet,\n  by heaven, I"),
            _example("random", 1, 3, 'ing <s> & "qu" th', "ing <s>"),
            _example("random", 2, 0, "\u00e9</script>zz", ""),
        ),
        not_done=(NotDone(what="self targets at m = 32", why="the budget of 300 s was spent"),),
        n_samples={target: 32 * len(COUNTS) for target in SLOPES},
        provenance=_provenance(),
    )


def _stepped(entry: Accessibility) -> dict[str, Any]:
    """Return what an entry says of the steps behind it."""
    return {
        "max_steps": 300,
        "steps_taken": (280, 300),
        "cut": 1,
        "by_steps": BySteps(steps=(4, 300), n50=(1.0, 8.0), low=(0.5, 7.0), high=(2.0, 9.0)),
        "levels": (Level(steps=150, strings=entry.strings, n50=entry.n50),),
        "levelling": "still growing",
    }


def known_well() -> StudyResults:
    """The same study with what later versions record beside it: information, falls, precision, search."""
    results = study()
    entries = tuple(
        entry.model_copy(
            update={"information": _information(), "cliff": _cliff(), "still_growing": 3, **_stepped(entry)}
        )
        for entry in results.accessibility
    )
    steps = {"steps_taken": (280, 300)}
    slopes = tuple(one.model_copy(update={**_line(one), **steps}) for one in results.slopes)
    numbers = (
        Known(what="n50", target="random", m=1, relative_width=0.23, known=False),
        Known(what="n50", target="self", m=1, relative_width=None, known=False),
        Known(what="slope", target="random", m=None, relative_width=0.08, known=True),
    )
    spared = (EndedEarly(target="random", m=8, strings=12, why="known to 10 %"),)
    probe = StartProbe(
        scale=10.0,
        m=1,
        strings=2,
        steps=40,
        mean_reach={"1": 4.5, "10": 5.5},
        reaches={"1": (4, 5), "10": (5, 6)},
        losses={"1": (9.5, 9.0), "10": (7.5, 8.0)},
        seconds=2.5,
        why="two strings are few",
    )
    search = SearchRecord(
        dtype="bfloat16",
        attention="eager",
        probe_seconds={"float32 sdpa": 0.1, "bfloat16 eager": 0.05},
        probe_of_start=probe,
        start_scale=10.0,
        seconds=3.5,
    )
    found = {
        "accessibility": entries,
        "slopes": slopes,
        "precision": Precision(wanted=0.1, numbers=numbers, ended_early=spared),
        "search": search,
    }
    return parse(results.model_copy(update=found).model_dump(mode="json"))  # type: ignore[return-value]


def _information() -> Information:
    return Information(
        ce_without_bits=93.0,
        ce_with_bits=1.5,
        bits_per_vector=91.5,
        bits_per_coordinate=0.357,
        bits_per_stored_bit=0.0112,
        tokens_gained=8.4,
    )


def _cliff() -> Cliff:
    return Cliff(
        n90=5.1,
        n10=11.2,
        width=6.1,
        low=5.0,
        high=7.5,
        relative=0.7,
        predicted=0.32,
        factor_per_token=1.3,
    )


def _line(one: Slope) -> dict[str, Any]:
    return {
        "covariance": (0.01, 0.2, -0.02),
        "through_origin": Interval(value=2.7, low=2.5, high=2.9),
        "exponent": Interval(value=0.98, low=0.9, high=1.05),
        "better": "line",
        "bounds": 1,
        "shape_words": "n50 grows as m to the power 0.98",
        "extrapolated": (Extrapolated(m=32, n50=Interval(value=90.0, low=80.0, high=100.0)),),
    }


def _limits() -> list[Limit]:
    ball = WIDTH * math.log(4097)
    log_v_d = WIDTH / 2 * math.log(math.pi) - math.lgamma(WIDTH / 2 + 1)
    ellipsoid = log_v_d + WIDTH * math.log(2**11 + math.sqrt(WIDTH) / 2)
    paper = "width and dtype only"
    return [
        _limit(
            "ball (paper)", "ball", "linf", "hidden", "convention", ball, paper, "r cancels: 2r/eps = 4096"
        ),
        _limit(
            "norm ellipsoid",
            "ellipsoid",
            "l2",
            "hidden",
            "proved",
            ellipsoid,
            "final norm gain",
            "",
            tightest=True,
        ),
        _limit(
            "box of hidden states", "box", "linf", "hidden", "proved", 0.94 * ball, "4,096 sampled states", ""
        ),
        _limit("input box", "box", "linf", "input", "proved", 0.71 * ball, "token table", "", tightest=True),
        _limit("input ball", "ball", "l2", "input", "proved", 0.9 * ball, "token table", ""),
        _limit(
            "float32 grid", "grid", "none", "format", "exact count", 22.1 * WIDTH, "dtype", "", tightest=True
        ),
    ]


def _limit(name, support, norm, premise, packing, nats, source, note, *, tightest=False) -> Limit:
    return Limit(
        name=name,
        support=support,
        norm=norm,
        premise=premise,
        packing=packing,
        log_packing_nats=nats,
        tokens_per_vector=nats / math.log(USABLE),
        bits_per_coordinate=nats / math.log(2) / WIDTH,
        source=source,
        note=note,
        tightest_of_premise=tightest,
    )


def _measured(rng: np.random.Generator, target: str, m: int, limits: list[Limit]) -> Accessibility:
    middle = SLOPES[target] * m + 0.6
    drawn = np.exp(rng.normal(math.log(middle), SPREAD, size=32)).astype(int)
    reaches = sorted(min(LIMIT, int(reach)) for reach in drawn)
    n50 = float(np.median(reaches)) + 0.37
    error = 1.96 * 1.25 * SPREAD * n50 / math.sqrt(32)
    tokens = n50 / m
    hit = sum(reach == LIMIT for reach in reaches)
    return Accessibility(
        target=target,
        m=m,
        protocol="frontier",
        bos="none",
        strings=32,
        finished=32,
        limit=LIMIT,
        outcomes={"gave_up": 32 - hit, "hit_limit": hit} if hit else {"gave_up": 32},
        reaches=tuple(reaches),
        censored=tuple(reach == LIMIT for reach in reaches),
        smallest_gap=0.0012 * m,
        extent=Extent(median_rms_over_inputs=120.5 * m, inside_input_box=3, strings=32),
        n50=Interval(
            value=n50,
            low=n50 - error,
            high=n50 + error,
            verdict="estimated",
            confidence=0.95,
            words=f"{n50:.1f} tokens (95 % interval {n50 - error:.1f} to {n50 + error:.1f}, 32 strings)",
        ),
        curve=_curve(reaches),
        tokens_per_vector=tokens,
        bits_per_coordinate=tokens * math.log2(USABLE) / WIDTH,
        bits_ids=n50 * math.log2(USABLE),
        bits_vectors=32 * WIDTH * m,
        steps=12_345 * m,
        seconds=4.3 * m,
        ratio_to_limits={limit.name: limit.tokens_per_vector / tokens for limit in limits},
    )


def _curve(reaches: list[int]) -> Columns:
    lengths = list(range(1, min(LIMIT, max(reaches) + 1) + 1))
    shares = [sum(reach >= n for reach in reaches) / len(reaches) for n in lengths]
    errors = [1.96 * math.sqrt(max(share * (1 - share), 0.03) / len(reaches)) for share in shares]
    return Columns(
        n=tuple(lengths),
        share=tuple(shares),
        low=tuple(max(0.0, share - error) for share, error in zip(shares, errors, strict=True)),
        high=tuple(min(1.0, share + error) for share, error in zip(shares, errors, strict=True)),
    )


def _slope(target: str, measured: list[Accessibility], limits: list[Limit]) -> Slope:
    points = [entry.n50.value for entry in measured if entry.target == target]
    slope, intercept = np.polyfit(COUNTS, points, 1).tolist()
    low, high = 0.9 * slope, 1.1 * slope
    words = f"{slope:.1f} tokens per vector (95 % interval {low:.1f} to {high:.1f})"
    return Slope(
        target=target,
        m=COUNTS,
        slope=Interval(value=slope, low=low, high=high, words=words),
        intercept=intercept,
        r2=0.994,
        ratios=tuple(
            Ratio(limit=limit.name, ratio=Interval(value=c / slope, low=c / high, high=c / low))
            for limit in limits
            for c in [limit.tokens_per_vector]
        ),
    )


def _example(target: str, m: int, reach: int, text: str, emitted: str) -> Example:
    key = f"{target}-{m}-0f3a91c2"
    return Example(target=target, m=m, key=key, reach=reach, text=text, emitted=emitted)


def _model() -> Model:
    return Model(
        name="builtin:verse",
        family="gpt_neox",
        width=WIDTH,
        hidden_width=WIDTH,
        rows=ROWS,
        usable=USABLE,
        special_ids=(0, 1),
        bos_id=0,
        eos_id=1,
        layers=6,
        context=512,
        tied_head=False,
        head_bias=False,
        soft_cap=None,
        logit_scale=1.0,
        norm_kind="layer",
        embedding_scale=1.0,
        vector_scale=1.0,
        parameters=5_263_616,
        dtype="float32",
        stored_dtype="float16",
        fingerprint="9f3b11aa02c47d5e",
        revision=None,
        cache_ok=True,
        notes=("24 rows of the head belong to no token of the tokenizer",),
    )


def _provenance() -> Provenance:
    return Provenance(
        lmreach="0.1.0",
        versions={"torch": "2.13.0", "transformers": "5.24.0", "numpy": "2.4.0"},
        python="3.11.7",
        platform="Linux-x86_64",
        processor="an invented processor",
        cores=4,
        threads=2,
        device="cpu",
        dtype="float32",
        vector_dtype="float32",
        fingerprint="9f3b11aa02c47d5e",
        git_commit=None,
        command="lmreach study builtin:verse",
        seed=0,
        started="2026-01-01T04:00:00Z",
        seconds=231.0,
        interrupted=False,
        attention="sdpa",
        search_dtype="bfloat16",
        search_attention="eager",
        start_scale=10.0,
    )


def without_answers(verdict: str) -> StudyResults:
    """The same study where no n50 is known: ``above_limit`` (all censored), ``below_one`` or ``no_data``."""
    results = study()
    share, reach = {"above_limit": (1.0, LIMIT), "below_one": (0.1, 0), "no_data": (0.0, 0)}[verdict]
    n = () if verdict == "no_data" else tuple(range(1, LIMIT + 1 if reach else 3))
    change = {
        "n50": Interval(value=None, verdict=verdict, confidence=0.95),
        "curve": Columns(n=n, share=(share,) * len(n), low=(share,) * len(n), high=(1.0,) * len(n)),
        "reaches": (reach,) * 32,
        "censored": (reach == LIMIT,) * 32,
        "tokens_per_vector": None,
        "bits_per_coordinate": None,
        "bits_ids": None,
        "ratio_to_limits": {},
        "smallest_gap": None,
        "outcomes": {"hit_limit": 32} if reach else {"gave_up": 32},
    }
    if verdict == "no_data":
        change |= {"finished": 0, "reaches": (), "censored": (), "outcomes": {}}
    unknown = {
        "slope": Interval(
            value=None, verdict="too_few_points", words="fewer than two values of m have an n50"
        ),
        "intercept": None,
        "r2": None,
        "ratios": (),
    }
    return results.model_copy(
        update={
            "accessibility": tuple(entry.model_copy(update=change) for entry in results.accessibility),
            "slopes": tuple(slope.model_copy(update=unknown) for slope in results.slopes),
        }
    )


def one_m() -> StudyResults:
    """Only m = 1, so there is no slope."""
    results = study()
    kept = tuple(entry for entry in results.accessibility if entry.m == 1)
    return results.model_copy(update={"accessibility": kept, "slopes": ()})


def extreme() -> StudyResults:
    """A very large vocabulary, limits ten thousand times the slope, long names, an interrupted run."""
    results = study()
    name = "some-organisation/a-model-with-a-very-long-name-that-does-not-end-instruct-2026-preview"
    more = " of the long-winded kind with many words"
    ratio = Interval(value=10_000.0, low=9_000.0, high=11_000.0)
    return results.model_copy(
        update={
            "model": results.model.model_copy(
                update={"name": name, "rows": 262_208, "usable": 262_144, "width": 5376}
            ),
            "limits": tuple(
                limit.model_copy(
                    update={
                        "name": limit.name + more,
                        "log_packing_nats": 2000 * limit.log_packing_nats,
                        "tokens_per_vector": 2000 * limit.log_packing_nats / math.log(262_144),
                    }
                )
                for limit in results.limits
            ),
            "slopes": tuple(
                slope.model_copy(
                    update={"ratios": tuple(Ratio(limit=r.limit + more, ratio=ratio) for r in slope.ratios)}
                )
                for slope in results.slopes
            ),
            "provenance": results.provenance.model_copy(update={"interrupted": True}),
        }
    )


def empty() -> StudyResults:
    """A run that ended before anything was done."""
    nothing = {
        "limits": (),
        "support": None,
        "accessibility": (),
        "slopes": (),
        "examples": (),
        "not_done": (),
    }
    return study().model_copy(update=nothing)
