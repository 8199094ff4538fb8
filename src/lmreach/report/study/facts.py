"""Tables of names and values: the support of hidden states, the model, the settings, the provenance."""

from collections.abc import Mapping, Sequence

from pydantic import JsonValue

from lmreach.report.kit.format import NOT_KNOWN, duration
from lmreach.report.kit.table import Cell, Column, Row, Table, text_of
from lmreach.report.study import words
from lmreach.results import AnyResults
from lmreach.results.base import Result
from lmreach.results.study import StudyResults

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
    "target_files": "Files of targets (sha256)",
    "git_commit": "Source commit",
}


def support(results: StudyResults) -> Table:
    """The measured support of hidden states; no rows if it was not measured."""
    source = "Measured on the final hidden states of sampled prompts."
    held = [] if results.support is None else _held(results.support)
    return _pairs("support", "Support of the hidden states", source, held, _SUPPORT)


def model(results: AnyResults) -> Table:
    """Facts of the model, vocabulary first; notes are shown apart."""
    facts = [(name, text) for name, text in _held(results.model) if name not in {"notes", "rows", "usable"}]
    source = "Read from the weights and configuration, or found by probing."
    table = _pairs("model", "The model", source, facts, _MODEL)
    rows = (Row((Cell("Vocabulary (ids)"), Cell(words.vocabulary(results)))), *table.rows)
    return Table(table.name, table.caption, table.source, table.columns, rows)


def provenance(results: AnyResults) -> Table:
    """Where and how the run was made."""
    spent = duration(results.provenance.seconds)
    held = [(name, spent if name == "seconds" else text) for name, text in _held(results.provenance)]
    return _pairs("provenance", "Provenance", "Recorded by the run itself.", held, _PROVENANCE)


def config(results: AnyResults) -> Table:
    """Every setting of the run, nested names joined by dots."""
    flat = [(name, text_of(value)) for name, value in _flatten("", results.config)]
    return _pairs("config", "Settings", "The configuration that was run; times in seconds.", flat, {})


def _flatten(prefix: str, settings: Mapping[str, JsonValue]) -> list[tuple[str, JsonValue]]:
    flat: list[tuple[str, JsonValue]] = []
    for key, value in settings.items():
        name = f"{prefix}{key}"
        flat += _flatten(f"{name}.", value) if isinstance(value, Mapping) and value else [(name, value)]
    return flat


# What None means for these facts (see models/facts.py); other fields of None are left out.
_NONE = {
    "soft_cap": "none",
    "bos_id": "none",
    "eos_id": "none",
    "context": "no fixed limit",
    "embedding_scale": "not a single factor",
    "revision": NOT_KNOWN,
    "git_commit": NOT_KNOWN,
    "inside_norm_ellipsoid": NOT_KNOWN,
    "largest_ellipsoid_fraction": NOT_KNOWN,
}


def _held(part: Result) -> list[tuple[str, str]]:
    """Return every field of a part as text, without those that it does not have."""
    values = ((name, getattr(part, name)) for name in type(part).model_fields)
    return [
        (name, _NONE[name] if value is None else text_of(value))
        for name, value in values
        if value not in (None, {}) or name in _NONE
    ]


def _pairs(
    name: str, caption: str, source: str, given: Sequence[tuple[str, str]], labels: Mapping[str, str]
) -> Table:
    """Known names in their order, then whatever else was recorded: nothing is left out."""
    held = dict(given)
    order = [*(key for key in labels if key in held), *(key for key in held if key not in labels)]
    rows = tuple(Row((Cell(labels.get(key, key)), Cell(held[key]))) for key in order)
    return Table(name, caption, source, (Column("What", numeric=False), Column("Value", numeric=False)), rows)
