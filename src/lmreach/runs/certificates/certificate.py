"""One certificate by itself: find the model it speaks of, decode it, hand it on in other formats."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float, Int
from safetensors.torch import save

from lmreach.config import Bos, LoadConfig
from lmreach.engine.run import RunKind, open_run
from lmreach.engine.store import LEDGER, read_tensors
from lmreach.errors import InputError, OutputError, problem
from lmreach.files import write_whole
from lmreach.identity import require_same
from lmreach.models.decode import Decoded, greedy
from lmreach.models.frame import frame_of
from lmreach.models.load import load
from lmreach.models.loaded import LoadedModel
from lmreach.runs.certificates.stored import read_certificate

WITH_CERTIFICATES = (RunKind.STUDY, RunKind.REACHABLE)
"""Kinds of runs that claim what vectors emit."""


@dataclass(frozen=True, slots=True)
class Certificate:
    """Vectors, the ids they were confirmed to emit, and the claim.

    Attributes
    ----------
    vectors
        Shape (m, d), in the space of ``inputs_embeds``.
    ids
        Shape (n,).
    claim
        Model name, fingerprint, dtype, m, place of the start token, smallest gap, all as text.
    model
        What to load: as given, else as the run did.
    config
        How to load it.
    stored
        What the certificate keeps of the vectors: themselves, or the bit patterns of their format.
    """

    vectors: Float[np.ndarray, "m d"]
    ids: Int[np.ndarray, " n"]
    claim: dict[str, str]
    model: str
    config: LoadConfig
    stored: dict[str, np.ndarray]

    @property
    def bos(self) -> Bos:
        """Where the start token stood."""
        word = self.claim.get("bos", "none")
        if word not in ("none", "before", "after"):
            raise OutputError(problem("a start token none, before or after", repr(word), "run it again"))
        return word  # type: ignore[return-value]


def open_certificate(path: Path, model: str | None = None) -> Certificate:
    """Read a certificate and find its model: the one named, else the one of the run it lies in.

    Parameters
    ----------
    path
        A certificate, or the folder of a run that has just one.

    Raises
    ------
    OutputError
        Not a certificate, or a run of a kind that has none.
    InputError
        It lies outside of a run and no model was named, or is one of several.
    """
    if path.is_dir():
        path = _only_one(path)
    if not path.is_file():
        raise InputError(
            problem("a certificate file", f"'{path}', which is none", "see the certificates folder of a run")
        )
    vectors, ids, claim = read_certificate(path)
    stored = read_tensors(path)[0]
    run = path.resolve().parent.parent
    if (run / LEDGER).is_file():
        begun = open_run(run)
        return Certificate(
            vectors, ids, claim, model or begun.envelope.config.model or "", begun.load, stored
        )
    if model is None:
        named = claim.get("model", "an unknown model")
        raise InputError(
            problem(
                "a certificate inside its run, or its model",
                "neither",
                f"name the model after it; it speaks of {named}",
            )
        )
    return Certificate(vectors, ids, claim, model, LoadConfig(), stored)


def _only_one(folder: Path) -> Path:
    """Return the certificate of a run that has one."""
    run = open_run(folder)
    run.require(*WITH_CERTIFICATES, what="decode")
    with run.ledger() as store:
        paths = store.certificates()
    if len(paths) != 1:
        got = f"'{folder}', a run with {len(paths)}"
        raise InputError(problem("one certificate", got, "name a file in its certificates folder"))
    return paths[0]


def load_for(certificate: Certificate, note: Callable[[str], None] = lambda text: None) -> LoadedModel:
    """Load the model of a certificate.

    Parameters
    ----------
    note
        Told where less than the whole model could be compared.

    Raises
    ------
    OutputError
        It is not the model that the certificate speaks of.
    """
    model = load(certificate.model, certificate.config)
    said = require_same(
        certificate.claim.get("fingerprint"),
        model.facts.fingerprint,
        where="the certificate",
        remedy="name the model it was made with",
    )
    if said is not None:
        note(said)
    return model


def decode_certificate(model: LoadedModel, certificate: Certificate, n: int | None = None) -> Decoded:
    """Decode greedily from the certificate's vectors: as many ids as it claims, or ``n``."""
    vectors = torch.from_numpy(certificate.vectors).to(model.device)
    claim = certificate.claim
    frame = frame_of(model, certificate.bos, claim.get("prefix", ""), claim.get("suffix", ""))
    return greedy(model, vectors, n or len(certificate.ids), frame=frame)


def export_peft(certificate: Certificate, model: LoadedModel, folder: Path) -> Path:
    """Write the vectors as a PEFT prompt-tuning adapter, which generates from them with ``peft`` alone.

    The adapter puts its vectors in front of the embedded input, so what stands after the vectors is input to
    give, and what stands before them cannot be said.

    Raises
    ------
    InputError
        The certificate needs a start token or a text before its vectors.
    OutputError
        The folder cannot be written.
    """
    if certificate.bos == "before" or certificate.claim.get("prefix"):
        got = "a start token or text before them"
        raise InputError(
            problem("vectors that stand first, as in prompt tuning", got, "export as safetensors")
        )
    settings = model.model.config.get_text_config()
    layout = {
        "peft_type": "PROMPT_TUNING",
        "task_type": "CAUSAL_LM",
        "base_model_name_or_path": certificate.claim.get("model", certificate.model),
        "inference_mode": True,
        "num_virtual_tokens": int(certificate.vectors.shape[0]),
        "token_dim": int(certificate.vectors.shape[1]),
        "num_transformer_submodules": 1,
        "num_attention_heads": int(getattr(settings, "num_attention_heads", None) or 1),
        "num_layers": model.facts.layers,
        "prompt_tuning_init": "RANDOM",
    }
    return _write(
        folder,
        "adapter_model.safetensors",
        {"prompt_embeddings": _in_its_dtype(certificate)[0]},
        {**certificate.claim, "format": "pt"},
        {"adapter_config.json": json.dumps(layout, indent=1) + "\n"},
    )


def export_safetensors(certificate: Certificate, folder: Path) -> Path:
    """Write vectors and ids as plain safetensors with the claim as metadata.

    Vectors of float16 or bfloat16 are written in that dtype; of other formats, what the certificate keeps
    (bit patterns, their scale in the metadata) stands beside the vectors in float32.

    Raises
    ------
    OutputError
        The folder cannot be written.
    """
    vectors, kept = _in_its_dtype(certificate)
    beside = {} if kept else {k: torch.from_numpy(v) for k, v in certificate.stored.items() if k != "vectors"}
    tensors = {"vectors": vectors, "ids": torch.from_numpy(certificate.ids), **beside}
    return _write(folder, "vectors.safetensors", tensors, certificate.claim, {})


def _in_its_dtype(certificate: Certificate) -> tuple[torch.Tensor, bool]:
    """Return the vectors in the dtype they were held to, and whether there is one: else they are float32."""
    vectors, within = torch.from_numpy(certificate.vectors), certificate.claim.get("within", "")
    if within in ("float16", "bfloat16"):
        return vectors.to(getattr(torch, within)), True
    return vectors, False


def _write(
    folder: Path, name: str, tensors: dict[str, torch.Tensor], claim: dict[str, str], texts: dict[str, str]
) -> Path:
    remedy = "choose another --out"
    if folder.exists() and not (folder.is_dir() and not any(folder.iterdir())):
        raise OutputError(problem("a new or empty folder", f"'{folder}'", remedy))
    content = save({key: value.contiguous() for key, value in tensors.items()}, claim)
    write_whole(folder / name, content, remedy=remedy)
    for text_name, text in texts.items():
        write_whole(folder / text_name, text, remedy=remedy)
    return folder / name
