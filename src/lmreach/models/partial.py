"""What the limits need of a model, read without its layers: sizes, final norm and range of its input vectors.

The wiring comes from a skeleton: the same config cut down to one narrow block and a few rows, built with
random weights and probed like any model. Only the tensors of the modules that turn out to be the final norm
and the token table are then read, the table a piece at a time. Where any of this does not work out, the whole
model is loaded and a note says so.
"""

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor
from transformers import AutoConfig, PreTrainedModel

from lmreach.config import LoadConfig
from lmreach.models import builtin, checkpoint, norm, skeleton, tokens
from lmreach.models.facts import FinalNorm
from lmreach.models.folder import LIBRARY_ERRORS, load_tokenizer
from lmreach.models.gguf_header import read_header
from lmreach.models.gguf_meaning import meaning_of
from lmreach.models.hub import fetch
from lmreach.models.load import load
from lmreach.models.loaded import LoadedModel
from lmreach.models.quiet import quiet
from lmreach.models.resolve import BUILTIN, find
from lmreach.models.skeleton import Skeleton
from lmreach.models.stored import GgufFile, NeedsWhole, SafetensorsFiles, Tensors
from lmreach.models.trace import Call


@dataclass(frozen=True, eq=False)
class Parts:
    """What the limits take from a model.

    Attributes
    ----------
    name
        As in `ModelFacts`.
    width, hidden_width, rows, usable
        d, width of final hidden states, rows of the head, V.
    final_norm
        As applied.
    low, high
        Smallest and largest value per coordinate over input vectors of usable, non-special ids, shape (d,).
    fingerprint
        Of all weights; None where they were not all read.
    notes
        What a reader should know, among it why the whole model had to be loaded.
    """

    name: str
    width: int
    hidden_width: int
    rows: int
    usable: int
    final_norm: FinalNorm
    low: Float[np.ndarray, " d"]
    high: Float[np.ndarray, " d"]
    fingerprint: str | None = None
    notes: tuple[str, ...] = ()


def read_parts(spec: str | Path, config: LoadConfig = LoadConfig()) -> Parts:  # noqa: B008  (frozen)
    """Return what the limits need of a model, without reading its layers if that is possible.

    Parameters
    ----------
    spec
        A Hugging Face id, a folder, a ``.gguf`` file or ``builtin:NAME``.

    Raises
    ------
    ModelError
        As `load`: for files that are missing, cut short or of another kind.
    """
    with quiet():
        try:
            return _light(spec, config)
        except NeedsWhole as why:
            reason = str(why)
    parts = whole_parts(load(spec, config))
    return dataclasses.replace(parts, notes=(*parts.notes, f"the whole model was loaded: {reason}"))


def whole_parts(model: LoadedModel) -> Parts:
    """Return the same of a loaded model."""
    plain = torch.from_numpy(model.plain_ids).to(model.device)
    low, high = _start(model.facts.width)
    for ids in plain.split(1 << 14):
        low, high = _widen(low, high, model.input_vectors(ids).cpu())
    facts = model.facts
    return Parts(
        facts.name,
        facts.width,
        facts.hidden_width,
        facts.rows,
        facts.usable,
        model.final_norm,
        low.numpy(),
        high.numpy(),
        facts.fingerprint,
        facts.notes,
    )


def _light(spec: str | Path, config: LoadConfig) -> Parts:
    found = find(spec)
    if found.kind == "tiny":
        raise NeedsWhole("it is built in memory")
    if found.kind == "builtin":
        inner = builtin.resolve(found.name)
        if isinstance(inner, PreTrainedModel):
            raise NeedsWhole("it is built in memory")
        return _from_folder(inner, BUILTIN + found.name, config)
    if found.kind == "hub":
        folder, _ = fetch(found.name, config, lambda line: None)
        return _from_folder(folder, found.name, config)
    assert found.path is not None, "find gives a path for files and folders"
    if found.kind == "gguf":
        return _from_gguf(found.path, config)
    return _from_folder(found.path, found.name, config)


def _from_folder(folder: Path, name: str, config: LoadConfig) -> Parts:
    stored = checkpoint.inspect(folder, pickles=config.allow_pickle)
    if stored.elements is None:
        raise NeedsWhole("its weights are in the older pickle format")
    if stored.adapter:
        raise NeedsWhole("an adapter lies beside its weights")
    options: dict[str, Any] = {"local_files_only": True, "trust_remote_code": config.trust_remote_code}
    try:
        settings = AutoConfig.from_pretrained(folder, **options)
    except LIBRARY_ERRORS as error:
        raise NeedsWhole(f"its config was not understood ({type(error).__name__})") from error
    if getattr(settings, "quantization_config", None) is not None:
        raise NeedsWhole("its weights are quantised")
    small = skeleton.build(settings, config)
    tensors = SafetensorsFiles(stored.files, small.model.base_model_prefix)
    tokenizer = load_tokenizer(folder, name, options)
    text = settings.get_text_config()
    rows = _table_rows(small, tensors)
    usable = tokens.usable_ids(tokenizer, min(rows, int(text.vocab_size)))
    special = tokens.special_ids(tokenizer, text, rows)
    final = small.probed.final_norm
    if small.norm is not None:
        final = _load_norm(small.norm, small.factor, tensors)
    return _parts(name, small, tensors, (rows, usable, np.setdiff1d(usable, special)), final)


def _from_gguf(path: Path, config: LoadConfig) -> Parts:
    header = read_header(path)
    settings = meaning_of(header).settings
    tensors = GgufFile(header)
    small = skeleton.build(settings, config)
    wiring = small.probed.wiring
    tensors.names = {small.name(wiring.head): "output", small.name(wiring.embed): "token_embd"}
    if small.norm is not None:
        tensors.names[small.norm.name] = "output_norm"
    rows = _table_rows(small, tensors)
    usable, special = tensors.usable_and_special(rows)
    final = small.probed.final_norm
    if small.norm is not None:
        # These files hold gains as applied (1 + g where the model multiplies by that); a fresh norm's is 1.
        factor, width = float(final.gain.mean()), small.probed.hidden_width
        bias = tensors.shape(small.norm.name, "bias")
        final = FinalNorm(
            final.kind,
            factor * _vector(tensors, small.norm.name, "weight", width),
            np.zeros(width) if bias is None else factor * _vector(tensors, small.norm.name, "bias", width),
        )
    return _parts(path.name, small, tensors, (rows, usable, np.setdiff1d(usable, special)), final)


def _vector(tensors: Tensors, module: str, leaf: str, width: int) -> Float[np.ndarray, " d"]:
    if tensors.shape(module, leaf) != (width,):
        raise NeedsWhole("the tensors of its final norm were not found")
    return np.asarray(tensors.rows(module, leaf, 0, width).double().numpy())


def _table_rows(small: Skeleton, tensors: Tensors) -> int:
    """Return the number of rows of the head, whose matrix is the token table where it is not stored."""
    wiring = small.probed.wiring
    shape = tensors.shape(small.name(wiring.head), "weight")
    shape = shape or tensors.shape(small.name(wiring.embed), "weight")
    if shape is None:
        raise NeedsWhole("its token table was not found")
    return shape[0]


def _load_norm(call: Call, factor: float, tensors: Tensors) -> FinalNorm:
    """Put the stored tensors into the skeleton's norm and fit it as any norm is."""
    for leaf, parameter in call.module.named_parameters():
        if tensors.shape(call.name, leaf) != tuple(parameter.shape):
            raise NeedsWhole("the tensors of its final norm were not found")
        parameter.data.copy_(tensors.rows(call.name, leaf, 0, len(parameter)))
    fitted = norm.fit(call, factor)
    if fitted is None:
        raise NeedsWhole("its final norm, filled with its own weights, fits no known form")
    return fitted


def _parts(
    name: str,
    small: Skeleton,
    tensors: Tensors,
    ids: tuple[int, Int[np.ndarray, " usable"], Int[np.ndarray, " plain"]],
    final: FinalNorm,
) -> Parts:
    rows, usable, plain = ids
    low, high = _input_range(small, tensors, plain)
    probed = small.probed
    notes = (f"{rows} rows, {len(usable)} usable",) if len(usable) < rows else ()
    return Parts(name, probed.width, probed.hidden_width, rows, len(usable), final, low, high, notes=notes)


def _input_range(
    small: Skeleton, tensors: Tensors, plain: Int[np.ndarray, " plain"]
) -> tuple[Float[np.ndarray, " d"], Float[np.ndarray, " d"]]:
    """Run every row of the table through the skeleton's own input module, which may scale it."""
    embed = small.probed.wiring.embed
    table: Tensor = embed.weight  # type: ignore[assignment]
    name = small.name(embed)
    shape = tensors.shape(name, "weight")
    if shape is None or len(shape) != 2 or shape[1] != table.shape[1]:
        raise NeedsWhole("its token table was not found")
    low, high = _start(small.probed.width)
    for start in range(0, shape[0], skeleton.ROWS):
        stop = min(start + skeleton.ROWS, shape[0])
        here = plain[(plain >= start) & (plain < stop)] - start
        if len(here) == 0:
            continue
        table.data[: stop - start] = tensors.rows(name, "weight", start, stop).to(table.dtype)
        with torch.no_grad():
            low, high = _widen(low, high, embed(torch.from_numpy(here)).float())
    return low.numpy(), high.numpy()


def _start(width: int) -> tuple[Tensor, Tensor]:
    return torch.full((width,), torch.inf), torch.full((width,), -torch.inf)


def _widen(low: Tensor, high: Tensor, vectors: Float[Tensor, "n d"]) -> tuple[Tensor, Tensor]:
    return torch.minimum(low, vectors.amin(0)), torch.maximum(high, vectors.amax(0))
