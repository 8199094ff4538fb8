"""One text, and whether the model can be made to say it at all."""

from json import dumps
from pathlib import Path
from typing import Any

from lmreach.config import ReachableConfig
from lmreach.config.written import ids_of
from lmreach.errors import InputError, problem


def ask(
    spec: str,
    text: str,
    asked: ReachableConfig,
    *,
    out: str | None,
    json: bool,
    silent: bool,
) -> int:
    """Answer ``census --is-reachable``; a search that succeeds leaves a certificate."""
    from lmreach.cli.progress import Interrupt, Terminal
    from lmreach.config import CramConfig
    from lmreach.engine.folder import choose
    from lmreach.models.load import load as load_model
    from lmreach.progress import Silent
    from lmreach.runs.census.answer import is_reachable, save_answer

    place = None if out is None else choose(Path(out), spec, "reachable")
    model = load_model(spec, asked.load)
    ids = _ids(model, text)
    config = CramConfig(bos=asked.bos, seed=asked.seed)
    terminal = None if silent else Terminal()
    with Interrupt() as interrupt:
        try:
            answer = is_reachable(
                model,
                ids,
                ms=asked.m,
                runs=tuple(map(Path, asked.runs)),
                config=config,
                budget_s=asked.seconds,
                progress=terminal or Silent(),
                stop=interrupt,
            )
        finally:
            if terminal is not None:
                terminal.close()
    # A proof that is a certificate already needs no second one, unless a folder is named.
    saved = None
    if answer.vectors is not None and (answer.tried or place is not None):
        saved = save_answer(answer, model, place or choose(None, spec, "reachable"))
    if json:
        entry = {
            "model": model.facts.name,
            **answer.as_dict(),
            "certificate": None if saved is None else str(saved),
        }
        print(dumps(entry, indent=1, allow_nan=False))
    else:
        print(f"{answer.verdict}: {answer.reason}")
        for m, reach in answer.tried:
            print(f"  m = {m}: longest start {reach} of {len(answer.ids)} tokens")
        if saved is not None:
            print(f"certificate: {saved}")
    return 0


def _ids(model: Any, text: str) -> Any:
    if not text.startswith("ids:"):
        return model.encode(text)
    return ids_of(text.removeprefix("ids:"), repr(text))
