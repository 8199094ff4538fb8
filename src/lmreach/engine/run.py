"""Runs: what each kind is asked, how one is opened, begun, gone on with and ended.

A run is a folder with a ledger, certificates, ``results.json`` and a page. Its *envelope*, kept in the
ledger, says what was asked of which model; whoever opens a run reads it here, whatever version wrote it.
"""

import json
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from types import TracebackType
from typing import Any

from pydantic import JsonValue, ValidationError

from lmreach.config import LoadConfig, StudyConfig
from lmreach.config.census import CensusConfig, ReachableConfig
from lmreach.config.copying import CopyConfig
from lmreach.engine.folder import claim, read_json, set_aside, write_json
from lmreach.engine.lock import WriterLock
from lmreach.engine.provenance import changes, machine
from lmreach.engine.store import LEDGER, Store, read_tensors
from lmreach.errors import OutputError, problem
from lmreach.identity import require_same
from lmreach.results import AnyResults, open_results
from lmreach.results.run import RunResults

__all__ = ["Envelope", "Left", "Run", "RunConfig", "RunEnd", "RunKind", "Writing", "begin", "open_run"]

RUN_VERSION = 1
"""Version of the envelope; 0: runs from before there was one."""

RunConfig = StudyConfig | CensusConfig | ReachableConfig | CopyConfig

# What may differ when the same run goes on: how long this part of it takes, and where proofs are looked for.
_FREE = {"budget_s", "runs"}
_ENVELOPE, _SETTINGS, _END, _MACHINE = "run", "model_settings", "end", "machine"


class RunKind(StrEnum):
    """What a run is asked; a cram is a study without a budget."""

    STUDY = "study"
    CENSUS = "census"
    REACHABLE = "reachable"
    COPY = "copy"

    @property
    def config(self) -> type[RunConfig]:
        """The class of its settings."""
        return _CONFIGS[self]


_CONFIGS: dict[RunKind, type[RunConfig]] = {
    RunKind.STUDY: StudyConfig,
    RunKind.CENSUS: CensusConfig,
    RunKind.REACHABLE: ReachableConfig,
    RunKind.COPY: CopyConfig,
}


@dataclass(frozen=True, slots=True)
class Envelope:
    """What was asked of which model.

    Attributes
    ----------
    kind
        What the run is asked.
    schema_version
        `RUN_VERSION` of whoever began it.
    model
        The model's name; empty where an older version kept none.
    config
        Every setting.
    command
        How it was asked for, without paths.
    fingerprint
        Of the model; None where it is made in the run, or was not kept.
    started
        When it began, ISO 8601; empty where that was not kept.
    """

    kind: RunKind
    schema_version: int
    model: str
    config: RunConfig
    command: str
    fingerprint: str | None
    started: str

    def written(self) -> dict[str, JsonValue]:
        """Return what the ledger keeps, which `_envelope` reads again."""
        return {
            "kind": self.kind.value,
            "schema_version": self.schema_version,
            "model": self.model,
            "config": self.config.model_dump(mode="json"),
            "command": self.command,
            "fingerprint": self.fingerprint,
            "started": self.started,
        }


@dataclass(frozen=True, slots=True)
class Left:
    """Something that a run has not done, and why; ``open``: whether going on would do it."""

    what: str
    why: str
    open: bool = True


@dataclass(frozen=True, slots=True)
class RunEnd:
    """How a run, or this part of it, ended.

    Attributes
    ----------
    folder
        The run folder.
    interrupted
        Whether it was stopped before its plan or budget was through.
    left
        What was not done.
    failed
        Rounds that failed, each with its reason: the others stand.
    """

    folder: Path
    interrupted: bool
    left: tuple[Left, ...] = ()
    failed: tuple[str, ...] = ()

    @property
    def open(self) -> tuple[Left, ...]:
        """What going on would do."""
        return tuple(one for one in self.left if one.open)


@dataclass(frozen=True, slots=True)
class Run:
    """A run that is there.

    Attributes
    ----------
    folder
        Where.
    envelope
        What was asked.
    """

    folder: Path
    envelope: Envelope

    @property
    def kind(self) -> RunKind:
        """What the run is asked."""
        return self.envelope.kind

    @property
    def load(self) -> LoadConfig:
        """How its model was brought in."""
        return self.envelope.config.load

    def ledger(self) -> Store:
        """Open the ledger for reading."""
        return Store.reading(self.folder)

    def results(self) -> AnyResults:
        """Return what ``results.json`` holds; errors as `lmreach.results.open_results`."""
        return open_results(self.folder)

    def end(self) -> RunEnd | None:
        """Return how it ended last; None: it has not, or an older version did not say."""
        with self.ledger() as store:
            kept = store.meta(_END)
        if kept is None:
            return _end_of_an_older_run(self.folder) if self.envelope.schema_version == 0 else None
        left = tuple(Left(str(what), str(why), bool(again)) for what, why, again in kept["left"])
        return RunEnd(self.folder, bool(kept["interrupted"]), left, tuple(kept["failed"]))

    def writer(self) -> str | None:
        """Return who writes to it just now, None if nobody does."""
        return WriterLock.owner(self.folder)

    def require(self, *kinds: RunKind, what: str) -> None:
        """Refuse a run of another kind.

        Raises
        ------
        OutputError
            In one line: what does not apply to which kind of run.
        """
        if self.kind not in kinds:
            named = " or ".join(kinds)
            raise OutputError(
                problem(f"a {named} run to {what}", f"'{self.folder}', a {self.kind} run", _INSTEAD)
            )

    def check_model(self, fingerprint: str, settings: Mapping[str, Any] | None = None) -> str | None:
        """Refuse a model that is not the one of this run; returns a note where not all could be compared.

        Parameters
        ----------
        settings
            The model's settings, so that those that differ can be named.

        Raises
        ------
        OutputError
            Another model.
        """
        with self.ledger() as store:
            return _check_model(self.envelope, store, fingerprint, settings)


_INSTEAD = "see 'lmreach status' for what it holds"


def open_run(folder: str | Path) -> Run:
    """Open a run to read it, of whatever kind and from whatever version.

    Raises
    ------
    OutputError
        Not the folder of a run, or one of a newer version.
    """
    folder = Path(folder)
    remedy = "give the folder that a run printed"
    if not (folder / LEDGER).is_file():
        raise OutputError(problem(f"the folder of a run (with {LEDGER} in it)", f"'{folder}'", remedy))
    with Store.reading(folder) as store:
        envelope = _envelope(store)
    if envelope is None:
        got = f"'{folder}', stopped before it began"
        raise OutputError(problem("a run with its settings", got, "give the same command with this --out"))
    return Run(folder, envelope)


@dataclass(slots=True)
class Writing:
    """A run in the hands of its one writer; a context manager, which gives it back.

    What was made is taken away again if the block is left by an error before `bind`: a model that cannot be
    loaded leaves no folder behind.

    Attributes
    ----------
    folder
        Where.
    goes_on
        What was begun here before; None: a new run.
    """

    folder: Path
    kind: RunKind
    config: RunConfig
    goes_on: Envelope | None
    _claimed: Any
    _store: Store | None = field(default=None)
    _envelope: Envelope | None = field(default=None)

    @property
    def envelope(self) -> Envelope:
        """What was asked, from `bind` on."""
        assert self._envelope is not None, "bind comes first"
        return self._envelope

    @property
    def store(self) -> Store:
        """The ledger, from `bind` on."""
        assert self._store is not None, "bind comes first"
        return self._store

    def bind(
        self,
        model: str,
        fingerprint: str | None,
        settings: Mapping[str, Any] | None = None,
        *,
        command: str = "",
        note: Any = lambda text: None,
    ) -> Store:
        """Tie the run to its model and open the ledger; everything that can be refused was refused before.

        Parameters
        ----------
        model, fingerprint, settings
            Name, fingerprint and settings of the model; None: it is made in the run.
        command
            How the run is asked for; one that goes on keeps its first.
        note
            Told what the user should know.

        Raises
        ------
        OutputError
            The model is not the one that the run was begun with.
        """
        store = self._store = Store(self.folder, self._claimed.lock)
        before = self.goes_on
        self._note_machine(store, note)
        if before is not None and fingerprint is not None:
            said = _check_model(before, store, fingerprint, settings)
            if said is not None:
                note(said)
        self._envelope = Envelope(
            self.kind,
            RUN_VERSION,
            model,
            self.config,
            command if before is None else before.command,
            fingerprint if before is None or before.fingerprint is None else before.fingerprint,
            (before.started if before else "") or datetime.now(UTC).isoformat(),
        )
        if before is None or before.schema_version < RUN_VERSION:
            if settings is not None and (before is None or before.fingerprint is None):
                store.put_meta(_SETTINGS, dict(settings))
            store.put_meta(_ENVELOPE, self._envelope.written())
        store.put_meta(_END, None)  # from here to `end` it has not ended
        return store

    def _note_machine(self, store: Store, note: Any) -> None:
        """Say what software and hardware changed since a run was begun; its trials stand as they are."""
        kept, now = store.meta(_MACHINE), machine()
        if kept is not None and (changed := changes(kept, now)):
            note(f"this run goes on with {changed}; on other hardware the last digits may differ")
        store.put_meta(_MACHINE, now)

    def end(
        self,
        results: RunResults,
        *,
        interrupted: bool,
        left: Iterable[Left] = (),
        failed: Iterable[str] = (),
    ) -> RunEnd:
        """Write ``results.json`` and keep how the run ended."""
        ended = RunEnd(self.folder, interrupted, tuple(left), tuple(failed))
        self.write(results)
        kept = {
            "interrupted": interrupted,
            "left": [[one.what, one.why, one.open] for one in ended.left],
            "failed": list(ended.failed),
        }
        self.store.put_meta(_END, kept)
        return ended

    def write(self, results: RunResults) -> None:
        """Write ``results.json``, whole or not at all."""
        write_json(self.folder / "results.json", results.model_dump(mode="json"))

    def __enter__(self) -> "Writing":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._store is None:
            self._claimed.take_back()
        else:
            self._store.close()
            self._claimed.lock.release()


def begin(
    kind: RunKind,
    config: RunConfig,
    out: Path | None,
    *,
    name: str,
    stem: str | None = None,
    fresh: bool = False,
) -> Writing:
    """Begin a run, or go on with the one in ``out`` if it was asked the same.

    Parameters
    ----------
    out
        A new or empty folder, or that of a run with the same settings (the budget may differ: it is that of
        this part); None: a new one under ``lmreach-runs``.
    name
        The model as asked for, from which a default folder takes its name.
    stem
        What stands behind it; None: the kind.
    fresh
        Begin anew although ``out`` holds a run, which is moved to ``NAME.before-1`` beside it.

    Raises
    ------
    OutputError
        The folder holds something else, or a run that was asked something else (it is named), belongs to
        another process, or cannot be written.
    """
    if fresh and out is None:
        raise OutputError(problem("--out with --fresh", "none", "without it every run is a new one anyway"))
    claimed = claim(out, name, stem or kind.value)
    if fresh and claimed.holds_run:
        set_aside(claimed)
        claimed = claim(out, name, stem or kind.value)
    try:
        before = _begun(claimed.folder) if claimed.holds_run else None
        if before is not None:
            _agree(before, kind, config, claimed.folder)
    except BaseException:
        claimed.take_back()
        raise
    return Writing(claimed.folder, kind, config, before, claimed)


def _begun(folder: Path) -> Envelope | None:
    with Store.reading(folder) as store:
        return _envelope(store)


def _agree(before: Envelope, kind: RunKind, config: RunConfig, folder: Path) -> None:
    """Refuse to go on with other settings than a run was begun with."""
    remedy = "choose another --out, or pass --fresh"
    if before.kind is not kind:
        got = f"'{folder}', a {before.kind} run"
        raise OutputError(problem(f"a new folder or that of a {kind} run", got, remedy))
    other = list(_differences(before.config.model_dump(mode="json"), config.model_dump(mode="json")))
    if other:
        got = f"another {'; another '.join(other)} than in '{folder}'"
        raise OutputError(problem("the settings that the run began with", got, remedy))


def _differences(before: Any, after: Any, name: str = "") -> Iterable[str]:
    """Name each setting that differs, with both values."""
    if isinstance(before, dict) and isinstance(after, dict):
        for key in dict.fromkeys([*before, *after]):
            if name or key not in _FREE:
                yield from _differences(before.get(key), after.get(key), f"{name}.{key}" if name else key)
    elif before != after:
        yield f"{name} ({_shown(after)} instead of {_shown(before)})"


def _shown(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _check_model(
    envelope: Envelope, store: Store, fingerprint: str, settings: Mapping[str, Any] | None
) -> str | None:
    kept = store.meta(_SETTINGS)
    differs = "" if settings is None or kept is None else ", ".join(_differences(kept, dict(settings)))
    remedy = "bring the same model, or start a new run"
    return require_same(envelope.fingerprint, fingerprint, where="the run", remedy=remedy, difference=differs)


def _envelope(store: Store) -> Envelope | None:
    """Read the envelope, or put it together from what older versions kept; None: nothing was begun."""
    if not store.begun:
        return None
    kept = store.meta(_ENVELOPE)
    if kept is None:
        return _of_an_older_run(store)
    if kept["schema_version"] > RUN_VERSION or kept["kind"] not in set(RunKind):
        got = f"version {kept['schema_version']}, kind {kept['kind']!r}, in '{store.folder}'"
        remedy = "use the version of lmreach that wrote it, or a newer one"
        raise OutputError(problem(f"a run of version {RUN_VERSION} or older", got, remedy))
    kind = RunKind(kept["kind"])
    return Envelope(
        kind,
        kept["schema_version"],
        kept["model"],
        _config(kind, kept["config"], store.folder),
        kept["command"],
        kept["fingerprint"],
        kept["started"],
    )


_BEFORE = {"config": RunKind.STUDY, "census": RunKind.CENSUS, "copy": RunKind.COPY}


def _of_an_older_run(store: Store) -> Envelope | None:
    command, started = store.meta("command") or "", store.meta("started") or ""
    fingerprint = store.meta("fingerprint")
    for name, kind in _BEFORE.items():
        kept = store.meta(name)
        if kept is not None:
            config = _config(kind, kept, store.folder)
            return Envelope(kind, 0, "", config, command, fingerprint, started)
    for path in store.certificates():  # an answer to --is-reachable, which kept nothing else
        with suppress(OutputError):
            _, ids, claim_ = read_tensors(path)
            text = "ids:" + ",".join(map(str, ids.tolist()))
            model = claim_.get("model", "")
            config = ReachableConfig(model=model, text=text, bos=claim_.get("bos", "none"))  # type: ignore[arg-type]
            return Envelope(RunKind.REACHABLE, 0, model, config, "", claim_.get("fingerprint"), "")
    return None


def _end_of_an_older_run(folder: Path) -> RunEnd | None:
    """Read off the results of version 1 what a run has left out; None: there are none."""
    path = folder / "results.json"
    if not path.is_file():
        return None
    results = read_json(path)
    interrupted = bool(results["provenance"]["interrupted"])
    whole_study = results.get("kind", "study") == "study"
    left = [
        Left(one["what"], one["why"], bool(_STRINGS.match(one["what"])) if whole_study else interrupted)
        for one in results["not_done"]
    ]
    left += [
        Left(f"{one['strings']} of {one['target']} m={one['m']}", one["why"], open=False)
        for one in (results["results"].get("precision") or {}).get("ended_early", ())
    ]
    return RunEnd(folder, interrupted, tuple(left))


_STRINGS = re.compile(r"\d+ (strings|trials) of ")


def _config(kind: RunKind, kept: Any, folder: Path) -> RunConfig:
    try:
        return kind.config.model_validate(kept)
    except ValidationError as error:
        names = ", ".join(".".join(map(str, one["loc"])) for one in error.errors())
        remedy = "use the version of lmreach that wrote it, or a newer one"
        got = f"{names or 'others'} in '{folder}'"
        raise OutputError(problem("settings that this version knows", got, remedy)) from error
