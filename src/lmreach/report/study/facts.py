"""Tables of names and values: the support of hidden states, the model, the settings, the provenance."""

from collections.abc import Mapping
from typing import Any

from lmreach.report.kit.format import duration
from lmreach.report.kit.reading import Record
from lmreach.report.kit.table import Cell, Column, Row, Table, text_of
from lmreach.report.study import words

__all__ = ["config", "model", "provenance", "support"]

_SUPPORT = {
    "samples": "Hidden states sampled (states)",
    "prompt_lengths": "Prompt lengths (positions)",
    "kinds": "Kinds of prompt",
    "l1_max": "Largest l1 norm (units of the state)",
    "l2_max": "Largest l2 norm (units of the state)",
    "linf_max": "Largest coordinate, absolute (units of the state)",
    "mean_cos": "Mean cosine between states",
    "min_cos": "Smallest cosine between states",
    "inside_norm_ellipsoid": "All states inside the final norm’s ellipsoid",
    "largest_ellipsoid_fraction": "Furthest state, as a fraction of the ellipsoid’s radius",
}
_MODEL = {
    "name": "Name",
    "family": "Family",
    "width": "Width d (coordinates per prompt vector)",
    "hidden_width": "Width of the final hidden state (coordinates)",
    "special_ids": "Special ids",
    "bos_id": "Start id",
    "eos_id": "End id",
    "layers": "Layers (blocks)",
    "context": "Context (positions)",
    "parameters": "Parameters (weights)",
    "tied_head": "Head tied to the token table",
    "head_bias": "Head has a bias",
    "soft_cap": "Soft cap on logits",
    "logit_scale": "Logit scale (factor)",
    "norm_kind": "Final norm",
    "embedding_scale": "Embedding scale (factor)",
    "vector_scale": "Scale applied to vectors (factor)",
    "dtype": "Weights computed in",
    "stored_dtype": "Weights stored in",
    "fingerprint": "Fingerprint of the weights",
    "revision": "Revision",
    "cache_ok": "Cached decoding agreed with full recompute",
}
_PROVENANCE = {
    "command": "Command",
    "started": "Started (UTC)",
    "seconds": "Ran for",
    "interrupted": "Interrupted",
    "seed": "Seed",
    "fingerprint": "Fingerprint of the weights",
    "dtype": "Weights computed in",
    "vector_dtype": "Prompt vectors in",
    "attention": "Attention kernel",
    "search_dtype": "Optimiser's passes in",
    "search_attention": "Attention kernel of those",
    "start_scale": "First vectors' length (real inputs: 1)",
    "device": "Device",
    "processor": "Processor",
    "threads": "Threads",
    "platform": "Platform",
    "python": "Python",
    "lmreach": "lmreach",
    "versions": "Libraries",
    "git_commit": "Source commit",
}


def support(results: Record) -> Table:
    """The measured support of hidden states; no rows if it was not measured."""
    source = "Measured on the final hidden states of sampled prompts."
    return _pairs(
        "support", "Support of the hidden states", source, results["results"].get("support") or {}, _SUPPORT
    )


def model(results: Record) -> Table:
    """Facts of the model, vocabulary first; notes are shown apart."""
    facts = {
        key: value
        for key, value in (results.get("model") or {}).items()
        if key not in {"notes", "rows", "usable"}
    }
    table = _pairs(
        "model", "The model", "Read from the weights and configuration, or found by probing.", facts, _MODEL
    )
    if not facts:
        return table
    rows = (Row((Cell("Vocabulary (ids)"), Cell(words.vocabulary(results)))), *table.rows)
    return Table(table.name, table.caption, table.source, table.columns, rows)


def provenance(results: Record) -> Table:
    """Where and how the run was made."""
    given = dict(results.get("provenance") or {})
    if "seconds" in given:
        given["seconds"] = duration(given["seconds"])
    return _pairs("provenance", "Provenance", "Recorded by the run itself.", given, _PROVENANCE)


def config(results: Record) -> Table:
    """Every setting of the run, nested names joined by dots."""
    flat = dict(_flatten("", results.get("config") or {}))
    return _pairs("config", "Settings", "The configuration that was run; times in seconds.", flat, {})


def _flatten(prefix: str, settings: Mapping[str, Any]) -> list[tuple[str, Any]]:
    flat: list[tuple[str, Any]] = []
    for key, value in settings.items():
        name = f"{prefix}{key}"
        flat += _flatten(f"{name}.", value) if isinstance(value, Mapping) and value else [(name, value)]
    return flat


# What null means for these facts (see models/facts.py); elsewhere it means "not known".
_NONE = {
    "soft_cap": "none",
    "bos_id": "none",
    "eos_id": "none",
    "context": "no fixed limit",
    "embedding_scale": "not a single factor",
}


def _value(key: str, value: Any) -> str:
    return _NONE[key] if value is None and key in _NONE else text_of(value)


def _pairs(
    name: str, caption: str, source: str, given: Mapping[str, Any], labels: Mapping[str, str]
) -> Table:
    """Known names in their order, then whatever else was recorded: nothing is left out."""
    order = [*(key for key in labels if key in given), *(key for key in given if key not in labels)]
    rows = tuple(Row((Cell(labels.get(key, str(key))), Cell(_value(key, given[key])))) for key in order)
    return Table(name, caption, source, (Column("What", numeric=False), Column("Value", numeric=False)), rows)
