"""A hand-made results dict in the shape of ``results.json``, invented for the tests.

It is no recorded measurement: no number in it was measured.
"""

import copy
import math
from typing import Any

import numpy as np

WIDTH, ROWS, USABLE, LIMIT = 256, 1024, 1000, 128
SPREAD = 0.35
SLOPES = {"random": 2.6, "self": 4.9}
COUNTS = (1, 2, 4, 8, 16)


def study() -> dict[str, Any]:
    """A study with two target kinds at five values of m."""
    rng = np.random.default_rng(7)
    limits = _limits()
    measured = [_measured(rng, target, m, limits) for target in SLOPES for m in COUNTS]
    return {
        "schema": 1,
        "kind": "study",
        "model_name": "builtin:verse",
        "model": _model(),
        "config": {
            "model": "builtin:verse",
            "budget_s": 300.0,
            "m": list(COUNTS),
            "targets": list(SLOPES),
            "cram": {
                "protocol": "frontier",
                "strings": 32,
                "max_steps": 600,
                "lr": 1.0,
                "bos": "none",
                "n_max": None,
            },
        },
        "results": {
            "limits": limits,
            "support": {
                "samples": 4096,
                "prompt_lengths": [4, 16, 64],
                "kinds": ["random", "self"],
                "l1_max": 402.1,
                "l2_max": 31.7,
                "linf_max": 9.44,
                "mean_cos": 0.213,
                "min_cos": -0.41,
                "inside_norm_ellipsoid": True,
                "largest_ellipsoid_fraction": 0.982,
            },
            "accessibility": measured,
            "slopes": [_slope(target, measured, limits) for target in SLOPES],
        },
        "examples": [
            _example("self", 1, 7, "The quality of mercy", "The quality of mercy"),
            _example("self", 4, 19, "And yet,\n  by heaven, I think", "And yet,\n  by heaven, I"),
            _example("random", 1, 3, 'ing <s> & "qu" th', "ing <s>"),
            _example("random", 2, 0, "\u00e9</script>zz", ""),
        ],
        "not_done": [{"what": "self targets at m = 32", "why": "the budget of 300 s was spent"}],
        "n-samples": {target: 32 * len(COUNTS) for target in SLOPES},
        "provenance": _provenance(),
    }


def _limits() -> list[dict[str, Any]]:
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


def _limit(name, support, norm, premise, packing, nats, source, note, *, tightest=False) -> dict[str, Any]:
    return {
        "name": name,
        "support": support,
        "norm": norm,
        "premise": premise,
        "packing": packing,
        "log_packing_nats": nats,
        "tokens_per_vector": nats / math.log(USABLE),
        "bits_per_coordinate": nats / math.log(2) / WIDTH,
        "source": source,
        "note": note,
        "tightest_of_premise": tightest,
    }


def _measured(rng: np.random.Generator, target: str, m: int, limits: list[dict[str, Any]]) -> dict[str, Any]:
    middle = SLOPES[target] * m + 0.6
    drawn = np.exp(rng.normal(math.log(middle), SPREAD, size=32)).astype(int)
    reaches = sorted(min(LIMIT, int(reach)) for reach in drawn)
    n50 = float(np.median(reaches)) + 0.37
    error = 1.96 * 1.25 * SPREAD * n50 / math.sqrt(32)
    tokens = n50 / m
    hit = sum(reach == LIMIT for reach in reaches)
    return {
        "target": target,
        "m": m,
        "protocol": "frontier",
        "bos": "none",
        "strings": 32,
        "finished": 32,
        "limit": LIMIT,
        "outcomes": {"gave_up": 32 - hit, "hit_limit": hit} if hit else {"gave_up": 32},
        "reaches": reaches,
        "censored": [reach == LIMIT for reach in reaches],
        "smallest_gap": 0.0012 * m,
        "extent": {"median_rms_over_inputs": 120.5 * m, "inside_input_box": 3, "strings": 32},
        "n50": {
            "value": n50,
            "low": n50 - error,
            "high": n50 + error,
            "verdict": "estimated",
            "confidence": 0.95,
            "words": f"{n50:.1f} tokens (95 % interval {n50 - error:.1f} to {n50 + error:.1f}, 32 strings)",
        },
        "curve": _curve(reaches),
        "tokens_per_vector": tokens,
        "bits_per_coordinate": tokens * math.log2(USABLE) / WIDTH,
        "bits_ids": n50 * math.log2(USABLE),
        "bits_vectors": 32 * WIDTH * m,
        "steps": 12_345 * m,
        "seconds": 4.3 * m,
        "ratio_to_limits": {limit["name"]: limit["tokens_per_vector"] / tokens for limit in limits},
    }


def _curve(reaches: list[int]) -> dict[str, list[Any]]:
    lengths = list(range(1, min(LIMIT, max(reaches) + 1) + 1))
    shares = [sum(reach >= n for reach in reaches) / len(reaches) for n in lengths]
    errors = [1.96 * math.sqrt(max(share * (1 - share), 0.03) / len(reaches)) for share in shares]
    return {
        "n": lengths,
        "share": shares,
        "low": [max(0.0, share - error) for share, error in zip(shares, errors, strict=True)],
        "high": [min(1.0, share + error) for share, error in zip(shares, errors, strict=True)],
    }


def _slope(target: str, measured: list[dict[str, Any]], limits: list[dict[str, Any]]) -> dict[str, Any]:
    points = [record["n50"]["value"] for record in measured if record["target"] == target]
    slope, intercept = np.polyfit(COUNTS, points, 1).tolist()
    low, high = 0.9 * slope, 1.1 * slope
    return {
        "target": target,
        "m": list(COUNTS),
        "n50": points,
        "slope": slope,
        "low": low,
        "high": high,
        "intercept": intercept,
        "r2": 0.994,
        "verdict": "estimated",
        "words": f"{slope:.1f} tokens per vector (95 % interval {low:.1f} to {high:.1f})",
        "ratios": [
            {"limit": limit["name"], "ratio": c / slope, "low": c / high, "high": c / low}
            for limit in limits
            for c in [limit["tokens_per_vector"]]
        ],
    }


def _example(target: str, m: int, reach: int, text: str, emitted: str) -> dict[str, Any]:
    return {
        "target": target,
        "m": m,
        "key": f"{target}-{m}-0f3a91c2",
        "reach": reach,
        "text": text,
        "emitted": emitted,
    }


def _model() -> dict[str, Any]:
    return {
        "name": "builtin:verse",
        "family": "gpt_neox",
        "width": WIDTH,
        "hidden_width": WIDTH,
        "rows": ROWS,
        "usable": USABLE,
        "special_ids": [0, 1],
        "bos_id": 0,
        "eos_id": 1,
        "layers": 6,
        "context": 512,
        "tied_head": False,
        "head_bias": False,
        "soft_cap": None,
        "logit_scale": 1.0,
        "norm_kind": "layer",
        "embedding_scale": 1.0,
        "vector_scale": 1.0,
        "parameters": 5_263_616,
        "dtype": "float32",
        "stored_dtype": "float16",
        "fingerprint": "9f3b11aa02c47d5e",
        "revision": None,
        "cache_ok": True,
        "notes": ["24 rows of the head belong to no token of the tokenizer"],
    }


def _provenance() -> dict[str, Any]:
    return {
        "lmreach": "0.1.0",
        "versions": {"torch": "2.13.0", "transformers": "5.24.0", "numpy": "2.4.0"},
        "python": "3.11.7",
        "platform": "Linux-x86_64",
        "processor": "an invented processor",
        "threads": 2,
        "device": "cpu",
        "dtype": "float32",
        "vector_dtype": "float32",
        "fingerprint": "9f3b11aa02c47d5e",
        "git_commit": None,
        "command": "lmreach study builtin:verse",
        "seed": 0,
        "started": "2026-01-01T04:00:00Z",
        "seconds": 231.0,
        "interrupted": False,
        "attention": "sdpa",
    }


def without_answers(verdict: str) -> dict[str, Any]:
    """The same study where no n50 is known: ``above_limit`` (all censored), ``below_one`` or ``no_data``."""
    results = copy.deepcopy(study())
    share, reach = {"above_limit": (1.0, LIMIT), "below_one": (0.1, 0), "no_data": (0.0, 0)}[verdict]
    for record in results["results"]["accessibility"]:
        record["n50"] = {
            "value": None,
            "low": None,
            "high": None,
            "verdict": verdict,
            "confidence": 0.95,
            "words": "",
        }
        n = [] if verdict == "no_data" else list(range(1, LIMIT + 1 if reach else 3))
        record["curve"] = {"n": n, "share": [share] * len(n), "low": [share] * len(n), "high": [1.0] * len(n)}
        record.update(reaches=[reach] * 32, censored=[reach == LIMIT] * 32, tokens_per_vector=None)
        record.update(bits_per_coordinate=None, bits_ids=None, ratio_to_limits={}, smallest_gap=None)
        record["outcomes"] = {"hit_limit": 32} if reach else {"gave_up": 32}
        if verdict == "no_data":
            record.update(finished=0, reaches=[], censored=[], outcomes={})
    for slope in results["results"]["slopes"]:
        slope.update(slope=None, low=None, high=None, intercept=None, r2=None, ratios=[], n50=[None] * 5)
        slope.update(verdict="too_few_points", words="fewer than two values of m have an n50")
    return results


def one_m() -> dict[str, Any]:
    """Only m = 1, so there is no slope."""
    results = copy.deepcopy(study())
    kept = [record for record in results["results"]["accessibility"] if record["m"] == 1]
    results["results"].update(accessibility=kept, slopes=[])
    return results


def extreme() -> dict[str, Any]:
    """A very large vocabulary, limits ten thousand times the slope, long names, an interrupted run."""
    results = copy.deepcopy(study())
    name = "some-organisation/a-model-with-a-very-long-name-that-does-not-end-instruct-2026-preview"
    results["model_name"] = name
    results["model"].update(name=name, rows=262_208, usable=262_144, width=5376)
    for limit in results["results"]["limits"]:
        limit["log_packing_nats"] *= 2000
        limit["tokens_per_vector"] = limit["log_packing_nats"] / math.log(262_144)
        limit["name"] += " of the long-winded kind with many words"
    for slope in results["results"]["slopes"]:
        for ratio in slope["ratios"]:
            ratio["limit"] += " of the long-winded kind with many words"
            ratio.update(ratio=10_000.0, low=9_000.0, high=11_000.0)
    results["provenance"]["interrupted"] = True
    return results


def empty() -> dict[str, Any]:
    """A run that ended before anything was done."""
    results = copy.deepcopy(study())
    results["results"] = {"limits": [], "support": None, "accessibility": [], "slopes": []}
    results.update(examples=[], not_done=[])
    return results
