"""GGUF files: checked, converted once into an ordinary model folder, loaded from there ever after.

transformers reads these files directly, but converts the tokenizer anew each time: measured with 5.24, 110 s
for a 270M-parameter model with 262,144 tokens, against 4 s from the folder.
"""

import copy
import dataclasses
import hashlib
import math
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    PreTrainedModel,
    PreTrainedTokenizerBase,
    modeling_gguf_pytorch_utils,
)
from transformers.utils import logging as hf_logging

from lmreach.config import LoadConfig
from lmreach.errors import ModelError, problem
from lmreach.models import cache, checkpoint, memory
from lmreach.models.folder import LIBRARY_ERRORS, BroughtIn, bring_in, cannot_load, check_complete, placed
from lmreach.models.gguf_header import Header, read_header
from lmreach.models.gguf_meaning import Meaning, meaning_of

_GIB = 2**30
_SHARE = 0.05  # number formats with less of the weights than this are not named


@dataclasses.dataclass(frozen=True)
class _Contents:
    elements: int
    dtype: str


def bring_in_gguf(
    path: Path, config: LoadConfig, device: torch.device, say: Callable[[str], None]
) -> BroughtIn:
    """Load a GGUF file by way of the cache (see `lmreach.models.cache`).

    Raises
    ------
    ModelError
        For a file that is cut short, of an unknown kind, or lacks weights.
    """
    header = read_header(path)
    meaning = meaning_of(header)
    sha256 = _sha256(path)
    entry = _whole_entry(sha256)
    if entry is None:
        contents = _contents(header)
        # Measured: 11 bytes for each weight at the peak, when float32 weights exist twice.
        memory.require(11 * contents.elements, torch.device("cpu"), f"converting {path.name}")
        say(
            f"converting {path.name} once, which takes a minute or two; "
            f"{4 * contents.elements / _GIB:.1f} GiB will be kept in {cache.folder_of(sha256)}"
        )
        model, tokenizer = _convert(header, meaning)
        try:
            entry = cache.store(
                sha256, path.name, contents.dtype, lambda folder: _save(model, tokenizer, folder)
            )
        except (OSError, SafetensorError) as error:
            note = f"the converted model was not kept, the next load converts again: {error}"
            say(note)
            model = placed(model, device, config.dtype)
            return BroughtIn(
                path.name, model, tokenizer, f"gguf {contents.dtype}", notes=(meaning.note, note)
            )
        del model, tokenizer
    came = bring_in(entry.folder, path.name, config, device)
    notes = (meaning.note, *came.notes)
    return dataclasses.replace(came, stored_dtype=f"gguf {entry.stored_dtype}", notes=notes)


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _whole_entry(sha256: str) -> cache.Entry | None:
    entry = cache.lookup(sha256)
    if entry is None:
        return None
    try:
        checkpoint.inspect(entry.folder)
    except ModelError:
        cache.remove(entry)  # damaged since it was written: convert again
        return None
    return entry


def _contents(header: Header) -> _Contents:
    """Count the weights of a checked file, and name the number formats of most of them."""
    kinds: Counter[str] = Counter()
    for tensor in header.tensors.values():
        kinds[tensor.kind.name] += math.prod(tensor.shape)
    main = [kind for kind, count in kinds.most_common() if count >= _SHARE * kinds.total()]
    return _Contents(kinds.total(), " + ".join(main))


def _convert(header: Header, meaning: Meaning) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    path = header.path
    options: Any = {"gguf_file": path.name, "local_files_only": True}
    try:
        with _switchable_bar(), _placed_tensors(header.text("general.architecture") or "") as unplaced:
            pair: Any = AutoModelForCausalLM.from_pretrained(
                path.parent,
                config=meaning.settings,
                dtype=torch.float32,
                output_loading_info=True,
                **options,
            )
        tokenizer: PreTrainedTokenizerBase = AutoTokenizer.from_pretrained(path.parent, **options)
    except LIBRARY_ERRORS as error:
        raise cannot_load(path.name, error) from error
    model, info = pair
    check_complete(model, info, path.name)
    left = sorted(set(unplaced) - meaning.tensors)
    if left:
        got = f"{', '.join(left[:3])} in {path.name}, which it has no place for"
        remedy = "give the model folder that the file was made from"
        raise ModelError(problem(f"tensors of a {meaning.settings.model_type}", got, remedy))
    _check_rotary(model, meaning, path.name)
    return model, tokenizer


def _check_rotary(model: PreTrainedModel, meaning: Meaning, name: str) -> None:
    """Refuse a model that turns another number of coordinates than the header says."""
    turned = {2 * len(b) for n, b in model.named_buffers() if n.endswith("inv_freq")}
    if meaning.rotary is not None and turned and turned != {meaning.rotary}:
        got = f"{sorted(turned)} in {name} as transformers builds it"
        remedy = "give the model folder that the file was made from"
        raise ModelError(problem(f"{meaning.rotary} coordinates turned by position", got, remedy))


@contextmanager
def _placed_tensors(architecture: str) -> Iterator[list[str]]:
    """Collect the names of tensors that the reader of GGUF files finds no place for, and drops in silence."""
    reader: Any = modeling_gguf_pytorch_utils
    known = reader.TENSOR_PROCESSORS
    usual: Any = known.get(architecture, reader.TensorProcessor)
    unplaced: list[str] = []

    class Watched(usual):  # type: ignore[misc]
        def process(self, weights: Any, name: str, **rest: Any) -> Any:
            done = super().process(weights, name, **rest)
            if done.name is not None and done.name not in rest["tensor_key_mapping"]:
                unplaced.append(name)
            return done

    reader.TENSOR_PROCESSORS = {**known, architecture: Watched}
    try:
        yield unplaced
    finally:
        reader.TENSOR_PROCESSORS = known


@contextmanager
def _switchable_bar() -> Iterator[None]:
    """Let the reader of GGUF files use the library's own progress bar, which can be switched off."""
    reader: Any = modeling_gguf_pytorch_utils
    bar = reader.tqdm
    reader.tqdm = hf_logging.tqdm
    try:
        yield
    finally:
        reader.tqdm = bar


def _save(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, folder: Path) -> None:
    """Write an ordinary model folder; transformers refuses to save what still carries its quantisation."""
    settings = copy.deepcopy(model.config)
    if hasattr(settings, "quantization_config"):
        del settings.quantization_config
    with torch.device("meta"):
        plain = type(model)(settings)
    plain.load_state_dict(model.state_dict(), strict=True, assign=True)
    plain.tie_weights()
    plain.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
