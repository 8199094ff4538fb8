"""Results of copying as a run writes them, made up."""

import copy
from typing import Any

from . import sample


def share(count: int, of: int, low: float, high: float) -> dict[str, Any]:
    return {"count": count, "of": of, "share": count / of, "low": low, "high": high}


def length(n: int, right: int, characters: float) -> dict[str, Any]:
    every = share(right, 64, max(0.0, right / 64 - 0.1), min(1.0, right / 64 + 0.1))
    return {
        "layout": "alone",
        "length": n,
        "decoding": "free_running",
        "prompt": n + 2,
        "positions": 2 * n + 3,
        "strings": 64,
        "exact": every,
        "complete": every,
        "characters": {**share(round(64 * n * characters), 64 * n, 0.0, 1.0), "effective": 64.0},
        "first_wrong": [None] * right + [n - 1] * (64 - right),
        "first_wrong_quartiles": None if right == 64 else [n - 2.0, n - 1.0, n - 1.0],
        "seconds": 1.5,
    }


def n50(verdict: str = "estimated") -> dict[str, Any]:
    known = verdict in ("estimated", "separated")
    return {
        "verdict": verdict,
        "shape": "logistic",
        "confidence": 0.95,
        "n50": [20.5, 19.0, 22.0] if known else None,
        "n90": [18.0, 17.0, 19.0] if known else None,
        "n10": [23.0, 22.0, 25.0] if known else None,
        "width": [5.0, 3.0, 8.0] if known else None,
        "lapse": [0.0, 0.0, 0.1] if known else None,
        "bracket": [20.0, 21.0] if verdict == "separated" else None,
        "words": "20.5 tokens",
    }


def crammed(m: int, value: float | None) -> dict[str, Any]:
    return {
        "m": m,
        "strings": 4,
        "limit": 64 * m,
        "reaches": [4 * m, 5 * m, 6 * m, 7 * m],
        "censored": [False] * 4,
        "n50": {
            "value": value,
            "low": None if value is None else value - 1,
            "high": None,
            "verdict": "estimated" if value is not None else "above_limit",
            "confidence": 0.95,
            "words": "about that",
        },
        "curve": {
            "n": [1, 5 * m, 7 * m],
            "share": [1.0, 0.75, 0.0],
            "low": [0.4, 0.2, 0.0],
            "high": [1.0, 1.0, 0.6],
        },
        "steps": 800,
    }


def layout(name: str, p: float) -> dict[str, Any]:
    return {
        "layout": name,
        "lengths": [10, 20, 21],
        "prompts": [12, 22, 23],
        "right": [share(64, 64, 0.9, 1.0), share(40, 64, 0.5, 0.7), share(20, 64, 0.2, 0.4)],
        "n50": n50(),
        "only_usual": 9,
        "only_here": 1,
        "p_value": p,
    }


def copying(verdict: str = "estimated") -> dict[str, Any]:
    rights = {"above_limit": 64, "below_first": 0}
    lengths = [length(n, rights.get(verdict, 64 if n <= 20 else 0), 0.5) for n in (1, 8, 16, 20, 21, 320)]
    order = {
        "k": 1,
        "followed": share(30, 60, 0.4, 0.6),
        "followed_by_chance": 0.2,
        "ambiguous": share(50, 64, 0.6, 0.9),
        "ambiguous_usually": 0.5,
        "near": share(12, 60, 0.1, 0.3),
        "near_by_chance": 0.08,
    }
    return {
        "label": "length generalisation",
        "decoding": "free_running",
        "counted": "exact",
        "layout": "alone",
        "trained_to": 16,
        "training": {
            "kind": "rope",
            "parent": None,
            "task": "copy",
            "n": 3,
            "shortest": 1,
            "longest": 16,
            "steps": 1200,
            "seconds": 300.0,
            "reached": True,
            "mark": 0.99,
            "curve": [
                {"step": s, "loss": 3.0 - s / 500, "exact": s / 1200, "strings": 512, "seconds": s / 4}
                for s in (400, 800, 1200)
            ],
            "parameters": 500_000,
        },
        "alphabet": {"symbols": "letters", "trained": 26, "tested": 26, "unseen": 0, "unseen_letters": []},
        "lengths": lengths,
        "n50": n50(verdict),
        "mistakes": None
        if verdict == "above_limit"
        else {
            "strings": 128,
            "kinds": {"symbol": 120, "ended early": 8},
            "place_quartiles": [18.0, 20.0, 20.0],
            "within_training_length": 3,
            "orders": [
                order,
                {
                    "k": 2,
                    "followed": None,
                    "followed_by_chance": None,
                    "ambiguous": None,
                    "ambiguous_usually": None,
                    "near": None,
                    "near_by_chance": None,
                },
            ],
        },
        "layouts": [layout("alone", 1.0), layout("padded with 16", 0.001), layout("start x 8", 0.5)],
        "attention": [
            {
                "length": 20,
                "strings": 8,
                "layer": 1,
                "head": 2,
                "weight": 0.9,
                "at_mistakes": None,
                "mistakes": 0,
                "uniform": 0.03,
            },
            {
                "length": 21,
                "strings": 8,
                "layer": 1,
                "head": 2,
                "weight": 0.7,
                "at_mistakes": 0.1,
                "mistakes": 8,
                "uniform": 0.03,
            },
        ],
        "checked": {"length": 20, "strings": 2, "same": 2},
        "cramming": [crammed(1, 5.5), crammed(2, 11.0), crammed(4, None)],
        "seconds": 12.0,
    }


def zero_shot() -> dict[str, Any]:
    found = copying()
    return {
        **found,
        "label": "in-context copying",
        "counted": "complete",
        "trained_to": None,
        "training": None,
        "cramming": [],
        "alphabet": {**found["alphabet"], "trained": None},
    }


def nothing() -> dict[str, Any]:
    return {
        **copying(),
        "lengths": [],
        "n50": n50("no_data"),
        "mistakes": None,
        "layouts": [],
        "attention": [],
        "cramming": [],
    }


def run(section: dict[str, Any] | None = None) -> dict[str, Any]:
    base = copy.deepcopy(sample.study())
    return {
        **base,
        "kind": "copy",
        "results": {"copying": section or copying(), "limits": base["results"]["limits"]},
    }
