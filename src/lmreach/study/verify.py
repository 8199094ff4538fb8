"""Verify a run: decode every certificate again, and say which claims hold."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch

from lmreach.config import LoadConfig, StudyConfig
from lmreach.engine.store import Store, read_certificate
from lmreach.errors import LmreachError, OutputError, problem
from lmreach.models.decode import emitted_prefix
from lmreach.models.load import load
from lmreach.study.folder import existing


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of one certificate.

    Attributes
    ----------
    key
        The trial's key.
    cell
        Target kind and m.
    held
        Whether greedy decoding emitted every id, with a top-two gap above 0 at every step.
    emitted, claimed
        Tokens emitted and tokens claimed.
    why
        Empty when held; else what went wrong.
    """

    key: str
    cell: str
    held: bool
    emitted: int
    claimed: int
    why: str


def verify_run(
    run: Path, *, load_config: LoadConfig | None = None, on_verdict: Callable[[Verdict], None] | None = None
) -> list[Verdict]:
    """Decode every certificate of a run again and compare with what the ledger claims.

    Parameters
    ----------
    run
        Folder of the run.
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
        model = load(config.model, load_config or config.load)
        if model.facts.fingerprint != store.meta("fingerprint"):
            raise OutputError(
                problem(
                    f"the model of the run (weights {store.meta('fingerprint')})",
                    f"weights {model.facts.fingerprint}",
                    "bring the same weights",
                )
            )
        verdicts = []
        for trial in store.trials():
            if trial["reach"] == 0:
                continue
            claimed = trial["ids"][: trial["reach"]]
            path = store.certificate_path(trial["key"])
            try:
                vectors, ids, _ = read_certificate(path)
            except LmreachError as error:
                verdict = Verdict(trial["key"], trial["cell"], False, 0, len(claimed), str(error))
            else:
                emission = emitted_prefix(
                    model, torch.from_numpy(vectors).to(model.device), ids, bos=config.cram.bos
                )
                verdict = _judge(trial["key"], trial["cell"], emission.reach, ids.tolist(), claimed)
            verdicts.append(verdict)
            if on_verdict is not None:
                on_verdict(verdict)
    return verdicts


def _judge(key: str, cell: str, emitted: int, ids: list[int], claimed: list[int]) -> Verdict:
    if ids != claimed:
        return Verdict(key, cell, False, 0, len(claimed), "the certificate's ids are not the trial's")
    if emitted < len(claimed):
        return Verdict(
            key, cell, False, emitted, len(claimed), f"only {emitted} of {len(claimed)} ids came out"
        )
    return Verdict(key, cell, True, emitted, len(claimed), "")
