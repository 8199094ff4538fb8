"""Verify a run: decode every certificate again, and say which claims hold."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from jaxtyping import Float, Int

from lmreach.config import LoadConfig, StudyConfig
from lmreach.engine.folder import existing
from lmreach.engine.store import Store, read_certificate
from lmreach.errors import LmreachError, OutputError, problem
from lmreach.experiments.cramming.quantise import FORMATS, quantise
from lmreach.models.decode import emitted_prefix, greedy_batch
from lmreach.models.frame import frame_of
from lmreach.models.load import load
from lmreach.models.loaded import LoadedModel

_COMPANY = 8  # rows of the batch in which a claim is decoded as well

Status = Literal["held", "fragile", "failed"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of one certificate.

    Attributes
    ----------
    key
        The trial's key.
    cell
        Target kind and m.
    status
        ``held``: greedy decoding at batch 1 emitted every id, with a top-two gap above 0 at every step, both
        in the run's dtype and in float32, and so did every row of a batch of eight in the run's dtype;
        ``fragile``: some of these failed; ``failed``: neither dtype emitted it at batch 1.
    emitted, emitted_float32, emitted_in_batch
        Tokens emitted in the run's dtype, in float32, and in the run's dtype by the worst row of a batch.
    claimed
        Tokens claimed.
    width
        Coordinates of a vector; 0 where the certificate could not be read.
    quantised
        Tokens emitted after the vectors were rounded to a format, by its name; empty unless asked for.
    why
        Empty when held; else what went wrong.
    """

    key: str
    cell: str
    status: Status
    emitted: int
    emitted_float32: int
    emitted_in_batch: int
    claimed: int
    width: int
    quantised: dict[str, int]
    why: str

    @property
    def held(self) -> bool:
        """Whether the claim holds in both dtypes and in company."""
        return self.status == "held"


@dataclass(frozen=True, slots=True)
class _Claim:
    """A trial that claims something, and its certificate or why that cannot be read."""

    key: str
    cell: str
    claimed: list[int]
    vectors: Float[np.ndarray, "m d"] | None
    ids: Int[np.ndarray, " n"]
    why: str


def verify_run(
    run: Path,
    *,
    formats: tuple[str, ...] = (),
    load_config: LoadConfig | None = None,
    on_verdict: Callable[[Verdict], None] | None = None,
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

    Returns
    -------
    list of Verdict
        One per trial whose reach is at least 1, in order of keys. A missing, cut or altered certificate
        is a failed one, not an error.

    Raises
    ------
    OutputError
        Not a run folder, or the model's weights are not those that were measured.
    """
    with Store(existing(run)) as store:
        config = StudyConfig.model_validate(store.meta("config"))
        chosen = load_config or config.load
        model = load(config.model, chosen)
        if model.facts.fingerprint != store.meta("fingerprint"):
            raise OutputError(
                problem(
                    f"the model of the run (weights {store.meta('fingerprint')})",
                    f"weights {model.facts.fingerprint}",
                    "bring the same weights",
                )
            )
        claims = list(_claims(store))
    emitted = [_emitted(model, claim, config) for claim in claims]
    beside = [_emitted_in_batch(model, claim, config) for claim in claims]
    rounded = [{name: _emitted(model, claim, config, name) for name in formats} for claim in claims]
    if chosen.dtype == "float32":
        exact = emitted
    else:
        del model  # two copies of a large model may not fit
        wide = load(config.model, chosen.model_copy(update={"dtype": "float32"}))
        exact = [_emitted(wide, claim, config) for claim in claims]
    verdicts = []
    for claim, here, there, company, others in zip(claims, emitted, exact, beside, rounded, strict=True):
        verdicts.append(_judge(claim, here, there, company, others, chosen.dtype))
        if on_verdict is not None:
            on_verdict(verdicts[-1])
    return verdicts


def quantised_summary(verdicts: list[Verdict]) -> list[dict[str, Any]]:
    """Return, per format, how many claims hold after rounding and how many of their tokens still come out.

    The tokens are those of the longest prefix of each claim that is emitted.
    """
    rows = []
    width = max((one.width for one in verdicts), default=0)
    for name in verdicts[0].quantised if width else ():
        kept = [(one.quantised[name], one.claimed) for one in verdicts]
        claimed = sum(whole for _, whole in kept)
        rows.append(
            {
                "format": name,
                "bits_per_coordinate": FORMATS[name].bits_per_coordinate(width),
                "claims": len(kept),
                "hold_whole": sum(some == whole for some, whole in kept),
                "tokens_kept": sum(some for some, _ in kept),
                "tokens_claimed": claimed,
            }
        )
    return rows


def _claims(store: Store) -> Iterator[_Claim]:
    for trial in store.trials():
        if trial["reach"] == 0:
            continue
        claimed = trial["ids"][: trial["reach"]]
        vectors, ids, why = None, np.empty(0, dtype=np.int64), ""
        try:
            vectors, ids, _ = read_certificate(store.certificate_path(trial["key"]))
        except LmreachError as error:
            why = str(error)
        else:
            if ids.tolist() != claimed:
                vectors, why = None, "the certificate's ids are not the trial's"
        yield _Claim(trial["key"], trial["cell"], claimed, vectors, ids, why)


def _emitted(model: LoadedModel, claim: _Claim, config: StudyConfig, name: str | None = None) -> int:
    if claim.vectors is None:
        return 0
    vectors = torch.from_numpy(claim.vectors)
    if name is not None:
        vectors = quantise(vectors, name)
    frame = frame_of(model, config.cram.bos, config.cram.prefix, config.cram.suffix)
    return emitted_prefix(model, vectors.to(model.device), claim.ids, frame=frame).reach


def _emitted_in_batch(model: LoadedModel, claim: _Claim, config: StudyConfig) -> int:
    """Return what the worst of eight equal rows emits: a batch rounds differently from a single row."""
    if claim.vectors is None:
        return 0
    vectors = torch.from_numpy(claim.vectors).to(model.device).expand(_COMPANY, -1, -1)
    frame = frame_of(model, config.cram.bos, config.cram.prefix, config.cram.suffix)
    ids = greedy_batch(model, vectors, len(claim.ids), frame=frame)
    return int((ids == torch.from_numpy(claim.ids)).long().cumprod(dim=1).sum(dim=1).min())


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
    return Verdict(claim.key, claim.cell, status, emitted, exact, company, wanted, width, quantised, why)
