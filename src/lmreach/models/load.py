"""One way in: from what a user names to a frozen, probed `LoadedModel`."""

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Int
from transformers import PreTrainedModel, PreTrainedTokenizerBase

import lmreach.models.copiers  # noqa: F401  (registers the copiers' own model types)
from lmreach.config import LoadConfig
from lmreach.errors import InputError, ModelError, problem
from lmreach.models import builtin, device_map, tokens
from lmreach.models.cache_check import cache_agrees
from lmreach.models.facts import ModelFacts
from lmreach.models.fingerprint import fingerprint
from lmreach.models.folder import BroughtIn, bring_in, placed
from lmreach.models.gguf_file import bring_in_gguf
from lmreach.models.head import head_bias
from lmreach.models.hub import fetch
from lmreach.models.loaded import LoadedModel
from lmreach.models.probe import Probe, probe
from lmreach.models.quiet import quiet
from lmreach.models.resolve import BUILTIN, find
from lmreach.models.tiny_model import tiny_model

__all__ = ["LoadedModel", "ModelFacts", "ModelLike", "Tokenizer", "load"]

ModelLike = str | Path | PreTrainedModel | LoadedModel
"""What names a model, or is one."""

Tokenizer = PreTrainedTokenizerBase

Progress = Callable[[str], None]

_HARMLESS = {"transformers_version", "bos_token_id", "eos_token_id", "pad_token_id", "use_cache"}


def load(
    spec: ModelLike,
    config: LoadConfig = LoadConfig(),  # noqa: B008  (frozen)
    *,
    tokenizer: PreTrainedTokenizerBase | None = None,
    progress: Progress | None = None,
) -> LoadedModel:
    """Bring in a model, freeze it, find out how it is wired, and check that it can be measured.

    Parameters
    ----------
    spec
        A Hugging Face id, a folder, a ``.gguf`` file, ``builtin:NAME``, or a model of transformers, which is
        put into eval mode and frozen in place, and keeps its dtype and device. What `load` gave comes back.
    config
        dtype (float32 unless asked otherwise, whatever the checkpoint says), device, revision, offline.
    tokenizer
        Goes with a loaded model; replaces the folder's own otherwise.
    progress
        Called with a line whenever something takes long.

    Raises
    ------
    ModelError
        One line: what was expected, what came, what to do. Nothing is computed with a model that is missing a
        weight, and nothing local opens a connection.
    """
    say = progress or _say_nothing
    if isinstance(spec, LoadedModel | PreTrainedModel):
        _nothing_to_choose(spec, config, tokenizer)
    if isinstance(spec, LoadedModel):
        return spec
    with quiet():
        came = _bring_in(spec, config, tokenizer, say)
        _freeze(came.model)
        return _describe(came, config)


def _nothing_to_choose(
    model: LoadedModel | PreTrainedModel, config: LoadConfig, tokenizer: PreTrainedTokenizerBase | None
) -> None:
    """Refuse what cannot be had of a model that stands in memory: it would be passed over in silence."""
    plain = LoadConfig()
    odd = [name for name in LoadConfig.model_fields if getattr(config, name) != getattr(plain, name)]
    if odd:
        remedy = "load it so, or give its name instead"
        raise InputError(problem("a loaded model as it is", f"{', '.join(odd)} for it", remedy))
    if tokenizer is not None and isinstance(model, LoadedModel):
        remedy = "give the tokenizer to load"
        raise InputError(problem("a loaded model with its own tokenizer", "another one", remedy))


def _say_nothing(line: str) -> None:
    """Drop a progress line."""


def _bring_in(
    spec: str | Path | PreTrainedModel,
    config: LoadConfig,
    tokenizer: PreTrainedTokenizerBase | None,
    say: Progress,
) -> BroughtIn:
    if isinstance(spec, PreTrainedModel):
        return BroughtIn(_own_name(spec), spec, tokenizer, _dtype_name(spec))
    came = _find_and_bring_in(spec, config, say)
    return came if tokenizer is None else dataclasses.replace(came, tokenizer=tokenizer)


def _find_and_bring_in(spec: str | Path, config: LoadConfig, say: Progress) -> BroughtIn:
    found, device = find(spec), device_named(config.device)
    if config.device_map is not None and config.device != "auto":
        got = f"--device {config.device} as well"
        raise InputError(problem("a device or a map of devices", got, "leave one of them out"))
    if config.revision is not None and found.kind != "hub":
        got = f"revision {config.revision} with {found.name}, which is not on the hub"
        raise InputError(problem("a hub name where a revision is given", got, "leave the revision out"))
    if found.kind == "builtin":
        name = BUILTIN + found.name
        inner = builtin.resolve(found.name)
        if isinstance(inner, PreTrainedModel):
            return BroughtIn(name, _placed(inner, name, device, config), None, "float32")
        return bring_in(inner, name, config, device)
    if found.kind == "tiny":
        made = tiny_model(found.name, config.dtype)
        return BroughtIn(found.name, _placed(made, found.name, device, config), None, "float32")
    if found.kind == "hub":
        folder, revision = fetch(found.name, config, say)
        return dataclasses.replace(bring_in(folder, found.name, config, device), revision=revision)
    assert found.path is not None, "find gives a path for files and folders"
    if found.kind == "gguf":
        return bring_in_gguf(found.path, config, device, say)
    return dataclasses.replace(bring_in(found.path, found.name, config, device), revision=found.revision)


def _placed(model: PreTrainedModel, name: str, device: torch.device, config: LoadConfig) -> PreTrainedModel:
    """Move a model that was made in memory to its device, or spread it."""
    if config.device_map is None:
        return placed(model, device, config.dtype)
    whole = placed(model, torch.device("cpu"), config.dtype)
    done = device_map.spread(whole, config.device_map, name)
    device_map.check_spread(done, name)
    return done


def device_named(name: str) -> torch.device:
    """Return a device by its name; ``auto``: a GPU where there is one.

    Raises
    ------
    InputError
        torch cannot use it here.
    """
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:  # torch built without CUDA asserts
        reason = str(error).splitlines()[0]
        raise InputError(
            problem("a device torch can use here", f"{name} ({reason})", "use auto or cpu")
        ) from error
    return device


def _own_name(model: PreTrainedModel) -> str:
    given = str(getattr(model.config, "_name_or_path", "") or "")
    return Path(given).name if given else type(model).__name__


def _dtype_name(model: PreTrainedModel) -> str:
    return str(model.dtype).removeprefix("torch.")


def _freeze(model: PreTrainedModel) -> None:
    model.eval()
    model.requires_grad_(False)


def _describe(came: BroughtIn, config: LoadConfig) -> LoadedModel:
    settings = came.model.config.get_text_config()
    rows = getattr(settings, "vocab_size", None)
    if rows is None:
        raise ModelError(problem(f"vocab_size in the config of {came.name}", "none", "add it to config.json"))
    usable = tokens.usable_ids(came.tokenizer, int(rows))
    probed = probe(came.model, usable)
    usable = usable[usable < probed.rows]
    facts = _facts(came, probed, usable, settings, config)
    loaded = LoadedModel(came.model, came.tokenizer, facts, probed.final_norm, usable, probed.wiring)
    if cache_agrees(loaded):
        return loaded
    note = "decoding recomputes every step: the cache did not agree with a full recompute"
    facts = dataclasses.replace(facts, cache_ok=False, notes=(*facts.notes, note))
    return dataclasses.replace(loaded, facts=facts)


def _facts(
    came: BroughtIn, probed: Probe, usable: Int[np.ndarray, " usable"], settings: Any, config: LoadConfig
) -> ModelFacts:
    model, wiring = came.model, probed.wiring
    bos, eos = tokens.start_and_end(came.tokenizer, settings, probed.rows)
    known = set(usable.tolist())
    return ModelFacts(
        name=came.name,
        family=str(model.config.model_type),
        width=probed.width,
        hidden_width=probed.hidden_width,
        rows=probed.rows,
        usable=len(usable),
        special_ids=tuple(i for i in tokens.special_ids(came.tokenizer, settings, probed.rows) if i in known),
        bos_id=bos,
        eos_id=eos,
        layers=probed.layers or int(getattr(settings, "num_hidden_layers", 0)),
        context=probed.context,
        tied_head=wiring.head.weight is wiring.embed.weight,
        head_bias=head_bias(wiring.head) is not None,
        soft_cap=wiring.shape.soft_cap,
        logit_scale=wiring.shape.scale,
        norm_kind=probed.final_norm.kind,
        embedding_scale=probed.embedding_scale,
        vector_scale=probed.vector_scale,
        parameters=sum(p.numel() for p in model.parameters()),
        dtype=_dtype_name(model),
        stored_dtype=came.stored_dtype,
        fingerprint=fingerprint(model),
        revision=came.revision,
        cache_ok=True,
        notes=(*came.notes, *_notes(came, probed.rows, len(usable), config)),
    )


def _notes(came: BroughtIn, rows: int, usable: int, config: LoadConfig) -> list[str]:
    notes = []
    if came.tokenizer is None:
        notes.append(f"no tokenizer: all {rows} rows count as usable ids")
    elif usable < rows:
        notes.append(
            f"{rows} rows, {usable} usable: the tokenizer knows no token for the other {rows - usable}"
        )
    if _dtype_name(came.model) != config.dtype:
        notes.append(f"a loaded model keeps its dtype {_dtype_name(came.model)} (asked for: {config.dtype})")
    ignored = _generation_settings(came.model)
    if ignored:
        notes.append(f"generation settings that came with the model are ignored: {', '.join(ignored)}")
    return notes


def _generation_settings(model: PreTrainedModel) -> list[str]:
    settings = getattr(model, "generation_config", None)
    if settings is None:
        return []
    changed = {
        k for k, v in settings.to_diff_dict().items() if v is not None and not k.startswith(("_", "output_"))
    }
    return sorted(changed - _HARMLESS)
