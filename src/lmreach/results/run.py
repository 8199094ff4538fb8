"""What every results.json says of its run: the model, the settings, where it came from, what is missing."""

from functools import cached_property
from pathlib import Path
from typing import Self

from pydantic import Field, JsonValue

from lmreach.results.base import Result, Words
from lmreach.results.shown import Shown

__all__ = ["SCHEMA_VERSION", "Model", "NotDone", "Provenance", "RunResults"]

SCHEMA_VERSION = 2
"""Raised when a field changes its name or meaning; `lmreach.results.upgrade` then learns the older shape."""


class Model(Result):
    """Facts of the measured model; see `lmreach.models.facts.ModelFacts` for each of them.

    Attributes
    ----------
    special_ids
        Ids of special tokens.
    bos_id, eos_id, context, soft_cap, embedding_scale, revision
        None: the model has none.
    """

    name: str
    family: str
    width: int
    hidden_width: int
    rows: int
    usable: int
    special_ids: tuple[int, ...]
    bos_id: int | None
    eos_id: int | None
    layers: int
    context: int | None
    tied_head: bool
    head_bias: bool
    soft_cap: float | None
    logit_scale: float
    norm_kind: str
    embedding_scale: float | None
    vector_scale: float
    parameters: int
    dtype: str
    stored_dtype: str
    fingerprint: str
    revision: str | None
    cache_ok: bool
    notes: tuple[str, ...]


class Provenance(Result):
    """Where a result came from, without any path or host name.

    Attributes
    ----------
    versions
        Library to version.
    cores, git_commit
        None: not known (an installed package has no commit).
    command
        The run as it was typed. Empty: asked for from Python.
    seconds
        Spent on the run, those of its interrupted parts included.
    interrupted
        Whether it ended before its plan was through.
    seed
        None: the run has no seed of its own.
    fingerprint, dtype, vector_dtype, attention
        Of the weights, of the arithmetic, of the vectors, and its attention kernel. None: not recorded.
    search_dtype, search_attention, start_scale
        What a study's optimiser worked with. None: no study, or the protocol has no use for it.
    target_files
        sha256 of each file of targets, by its label: names alone may agree. A file that was gone when a run
        was resumed is left out.
    """

    lmreach: str
    versions: dict[str, str]
    python: str
    platform: str
    processor: str
    cores: int | None = None
    threads: int
    device: str
    git_commit: str | None
    started: str
    command: str = ""
    seconds: float = 0.0
    interrupted: bool = False
    seed: int | None = None
    fingerprint: str | None = None
    dtype: str | None = None
    vector_dtype: str | None = None
    attention: str | None = None
    search_dtype: str | None = None
    search_attention: str | None = None
    start_scale: float | None = None
    target_files: dict[str, str] = Field(default_factory=dict)


class NotDone(Result):
    """Something that was left out, and why."""

    what: str
    why: Words


class RunResults(Shown):
    """The envelope: what stands in every results.json, whatever was measured.

    Attributes
    ----------
    schema_version
        `SCHEMA_VERSION` of the program that wrote it; older files are brought up to it when they are read.
    kind
        ``study``, ``census``, ``copy`` or ``reachable``.
    config
        The settings as they were asked for, as their config object writes them; files by their own names.
    not_done
        What was left out. Empty: nothing.
    """

    schema_version: int = SCHEMA_VERSION
    kind: str
    model: Model
    config: dict[str, JsonValue]
    provenance: Provenance
    not_done: tuple[NotDone, ...] = ()

    @cached_property
    def folder(self) -> Path | None:
        """Folder of the run, with its report, ledger and certificates; None: not read from one."""
        return None

    @property
    def interrupted(self) -> bool:
        """Whether the run was stopped before its plan was through: the same call with ``out`` goes on."""
        return self.provenance.interrupted

    def read_from(self, folder: Path) -> Self:
        """Return the same, knowing its folder."""
        same = self.model_copy()
        same.__dict__["folder"] = folder  # no part of what was found: two results are equal without it
        return same
