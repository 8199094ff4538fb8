"""Verify a run: decode every certificate again, and say which claims hold."""

import hashlib
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

import numpy as np
import torch
from jaxtyping import Float, Int

from lmreach.config import LoadConfig, StudyConfig
from lmreach.config.census import ReachableConfig
from lmreach.engine.run import Run, open_run
from lmreach.engine.store import Store
from lmreach.errors import LmreachError, OutputError, problem
from lmreach.experiments.cramming.quantise import FORMATS, quantise
from lmreach.experiments.cramming.regions.base import VectorSet
from lmreach.experiments.cramming.regions.build import describe, held_to
from lmreach.models.decode import emitted_prefix, greedy_batch
from lmreach.models.fingerprint import settings_of
from lmreach.models.frame import PromptFrame, frame_of
from lmreach.models.load import load
from lmreach.models.loaded import LoadedModel
from lmreach.progress import Progress, Silent
from lmreach.results.certificates import Quantised, Verdict
from lmreach.results.records import Certified
from lmreach.results.upgrade import read_search
from lmreach.runs.certificates.certificate import WITH_CERTIFICATES
from lmreach.runs.certificates.stored import read_certificate

_COMPANY = 8  # rows of the batch in which a claim is decoded as well

Status = Literal["held", "fragile", "failed"]


@dataclass(frozen=True, slots=True)
class _Claim:
    """A trial that claims something, and its certificate or why that cannot be read."""

    key: str
    cell: str
    claimed: list[int]
    vectors: Float[np.ndarray, "m d"] | None
    ids: Int[np.ndarray, " n"]
    why: str
    said: dict[str, str] = field(default_factory=dict)


def verify_run(
    run: Path,
    *,
    formats: tuple[str, ...] = (),
    load_config: LoadConfig | None = None,
    on_verdict: Callable[[Verdict], None] | None = None,
    progress: Progress | None = None,
) -> list[Verdict]:
    """Decode every certificate of a run again and compare with what the ledger claims.

    Parameters
    ----------
    run
        Folder of the run.
    formats
        Names in `experiments.cramming.quantise.FORMATS`: the vectors are also rounded to each of these and
        decoded in the run's dtype.
    load_config
        How to load the model; None: as the run did.
    on_verdict
        Called with each verdict as it comes.
    progress
        Told of every decoding; one claim is decoded several times.

    Returns
    -------
    list of Verdict
        One per trial whose reach is at least 1, in order of keys. A missing, cut or altered certificate
        is a failed one, not an error.

    Raises
    ------
    OutputError
        Not a run folder, one of a kind that claims nothing or one that holds no claim, or the model is not
        the one that was measured.
    """
    begun, watched = open_run(run), progress or Silent()
    begun.require(*WITH_CERTIFICATES, what="verify")
    with begun.ledger() as store:
        claims = list(_claims(store))
    if not claims:
        got = f"none in '{run}': no string was reached"
        raise OutputError(problem("a certificate to verify", got, "see 'lmreach status', or resume the run"))
    chosen, name = load_config or begun.load, begun.envelope.config.model or ""
    watched.stage(f"loading {name}")
    model = load(name, chosen, progress=watched.note)
    said = begun.check_model(model.facts.fingerprint, settings_of(model.model))
    if said is not None:
        watched.note(said)
    claims = _members(claims, begun, model)
    wide_too = chosen.dtype != "float32"
    each = _Decoding(begun, model, watched, total=len(claims) * (2 + len(formats) + wide_too))
    emitted = [each.alone(claim) for claim in claims]
    beside = [each.in_company(claim) for claim in claims]
    rounded = [{name: each.alone(claim, name) for name in formats} for claim in claims]
    if not wide_too:
        exact = emitted
    else:
        del model, each.model  # two copies of a large model may not fit
        watched.stage(f"loading {name} in float32")
        each.model = load(name, chosen.model_copy(update={"dtype": "float32"}))
        exact = [each.alone(claim) for claim in claims]
    verdicts = []
    for claim, here, there, company, others in zip(claims, emitted, exact, beside, rounded, strict=True):
        verdicts.append(_judge(claim, here, there, company, others, chosen.dtype))
        if on_verdict is not None:
            on_verdict(verdicts[-1])
    return verdicts


def quantised_summary(verdicts: Sequence[Verdict]) -> tuple[Quantised, ...]:
    """Return, per format, how many claims hold after rounding and how many of their tokens still come out.

    The tokens are those of the longest prefix of each claim that is emitted.
    """
    width = max((one.width for one in verdicts), default=0)
    return tuple(
        Quantised(
            format=name,
            bits_per_coordinate=FORMATS[name].bits_per_coordinate(width),
            claims=len(verdicts),
            hold_whole=sum(one.quantised[name] == one.claimed for one in verdicts),
            tokens_kept=sum(one.quantised[name] for one in verdicts),
            tokens_claimed=sum(one.claimed for one in verdicts),
        )
        for name in (verdicts[0].quantised if width else ())
    )


def _claims(store: Store) -> Iterator[_Claim]:
    digests = store.proofs()
    for trial in store.trials(Certified):
        if not trial.reach:
            continue
        key, claimed = trial.key, list(trial.ids[: trial.reach])
        vectors, ids, why = None, np.empty(0, dtype=np.int64), ""
        said: dict[str, str] = {}
        try:
            path = store.certificate_path(key)
            vectors, ids, said = read_certificate(path)
        except LmreachError as error:
            why = str(error)
        else:
            if ids.tolist() != claimed:
                vectors, why = None, "the certificate's ids are not the trial's"
            elif key in digests and hashlib.sha256(path.read_bytes()).hexdigest() != digests[key]:
                vectors, why = None, "the certificate is not the one that was written with the trial"
        yield _Claim(key, trial.cell, claimed, vectors, ids, why, said)
    if not store.keys():  # an answer to --is-reachable of older versions: a certificate without a trial
        yield from map(_by_itself, store.certificates())


def _members(claims: list[_Claim], begun: Run, model: LoadedModel) -> list[_Claim]:
    """Return the claims; those whose vectors are not in the set that the run was held to are not read."""
    config = begun.envelope.config
    if not isinstance(config, StudyConfig) or not config.cram.within:
        return claims
    with begun.ledger() as store:
        search = read_search(store.meta("search"))
    scale = (search and search.start_scale) or config.cram.start_scale or 1.0
    held = held_to(config.cram.optimiser(scale), model)
    return [_member(claim, held, describe(held), model.device) for claim in claims]


def _member(claim: _Claim, held: VectorSet, said: dict[str, str], device: torch.device) -> _Claim:
    if claim.vectors is None:
        return claim
    for name, value in said.items():
        if claim.said.get(name) != value:
            why = f"the certificate says {name} {claim.said.get(name, 'nothing')}, the run {value}"
            return replace(claim, vectors=None, why=why)
    first = held.outside(torch.from_numpy(claim.vectors).to(device))
    if first is None:
        return claim
    why = f"not within {held.within.text}: {first.got} at {first.text} ({first.allowed})"
    return replace(claim, vectors=None, why=why)


def _by_itself(path: Path) -> _Claim:
    try:
        vectors, ids, claim = read_certificate(path)
    except LmreachError as error:
        return _Claim(path.stem, "reachable", [0], None, np.empty(0, dtype=np.int64), str(error))
    return _Claim(path.stem, f"reachable m={claim.get('m', len(vectors))}", ids.tolist(), vectors, ids, "")


class _Decoding:
    """Decodes claims with one model at a time, and says how far it is."""

    def __init__(self, run: Run, model: LoadedModel, progress: Progress, total: int) -> None:
        self.model = model
        self._config = run.envelope.config
        self._progress, self._left, self._done = progress, total, 0
        self._begun = time.monotonic()
        progress.stage("decoding every certificate again")
        progress.plan(total)

    def alone(self, claim: _Claim, name: str | None = None) -> int:
        """Return the ids emitted at batch 1, of vectors rounded to a format if one is named."""
        if claim.vectors is None:
            return self._tell(claim, 0)
        vectors = torch.from_numpy(claim.vectors)
        if name is not None:
            vectors = quantise(vectors, name)
        emission = emitted_prefix(self.model, vectors.to(self.model.device), claim.ids, frame=self._frame())
        return self._tell(claim, emission.reach)

    def in_company(self, claim: _Claim) -> int:
        """Return what the worst of eight equal rows emits: a batch rounds differently from a single row."""
        if claim.vectors is None:
            return self._tell(claim, 0)
        vectors = torch.from_numpy(claim.vectors).to(self.model.device).expand(_COMPANY, -1, -1)
        ids = greedy_batch(self.model, vectors, len(claim.ids), frame=self._frame())
        same = (ids == torch.from_numpy(claim.ids)).long().cumprod(dim=1).sum(dim=1).min()
        return self._tell(claim, int(same))

    def _frame(self) -> PromptFrame:
        """Return what stands around the vectors of the run."""
        config = self._config
        if isinstance(config, StudyConfig):
            return frame_of(self.model, config.cram.bos, config.cram.prefix, config.cram.suffix)
        assert isinstance(config, ReachableConfig)
        return frame_of(self.model, config.bos)

    def _tell(self, claim: _Claim, reach: int) -> int:
        self._done, self._left = self._done + 1, self._left - 1
        self._progress.string(claim.cell, reach, "decoded again")
        self._progress.expect((time.monotonic() - self._begun) / self._done * self._left)
        return reach


def _judge(
    claim: _Claim, emitted: int, exact: int, company: int, quantised: dict[str, int], dtype: str
) -> Verdict:
    wanted = len(claim.claimed)
    good = [claim.vectors is not None and count == wanted for count in (emitted, exact, company)]
    status: Status = "held" if all(good) else "fragile" if any(good[:2]) else "failed"
    why = claim.why
    if status == "fragile":
        places = ((emitted, dtype), (exact, "float32"), (company, f"{dtype} in a batch of {_COMPANY}"))
        count, where = next(place for place, fine in zip(places, good, strict=True) if not fine)
        why = f"only {count} of {wanted} ids came out in {where}"
    elif status == "failed" and not why:
        why = f"only {emitted} of {wanted} ids came out"
    width = 0 if claim.vectors is None else claim.vectors.shape[1]
    return Verdict(
        key=claim.key,
        cell=claim.cell,
        status=status,
        emitted=emitted,
        emitted_float32=exact,
        emitted_in_batch=company,
        claimed=wanted,
        width=width,
        quantised=quantised,
        why=why,
    )
