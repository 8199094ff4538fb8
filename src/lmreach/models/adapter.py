"""An adapter that lies beside the weights of its model: merged into them, as the two are one model."""

import importlib.util
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from transformers import PreTrainedModel

from lmreach.errors import ModelError, problem
from lmreach.models.checks import distance, tolerance

__all__ = ["ADAPTER", "base_alone", "merge", "require_library"]

ADAPTER = "adapter_config.json"
_REMEDY = (
    f"merge it (peft: merge_and_unload, then save_pretrained), or move {ADAPTER} out to measure the base"
)
_PROBED = 6  # tokens of a pass before and after merging


def require_library(name: str, facts: dict[str, Any]) -> str:
    """Return the kind of an adapter beside the weights of a model, where it can be applied.

    Parameters
    ----------
    name
        The folder's.
    facts
        What its file says.

    Raises
    ------
    ModelError
        It is none of weights, or the library that knows adapters is not installed.
    """
    kind = str(facts.get("peft_type", "PEFT"))
    got = f"{name} with both the weights of a model and a {kind} adapter"
    if facts.get("num_virtual_tokens"):
        remedy = f"judge its vectors (lmreach judge), or move {ADAPTER} out to measure the model"
        raise ModelError(problem("one model", got, remedy))
    if importlib.util.find_spec("peft") is None:
        raise ModelError(
            problem("peft, which applies adapters", f"{got}, and none", f"install it, {_REMEDY}")
        )
    return kind


@contextmanager
def base_alone(folder: Path) -> Iterator[Path]:
    """Give a folder with everything of a model but its adapter, which transformers would wrap around it."""
    with TemporaryDirectory() as made:
        for path in folder.iterdir():
            if not path.name.startswith("adapter_"):
                (Path(made) / path.name).symlink_to(path.resolve())
        yield Path(made)


def merge(model: PreTrainedModel, folder: Path, kind: str) -> tuple[PreTrainedModel, str]:
    """Return a model with what its adapter adds in its weights, and a note that says so.

    Raises
    ------
    ModelError
        The logits are no longer those of model and adapter.
    """
    from peft import PeftModel

    ids = torch.arange(_PROBED, device=model.device)[None]
    both = PeftModel.from_pretrained(model, str(folder)).eval()
    with torch.no_grad():
        before = both(input_ids=ids, use_cache=False).logits
        merged: PreTrainedModel = both.merge_and_unload(safe_merge=True)
        after = merged(input_ids=ids, use_cache=False).logits
    far = distance(before, after)
    if not far <= tolerance(merged):
        got = f"logits that differ by {far:.3g} once the {kind} adapter of {folder.name} is merged"
        raise ModelError(problem("an adapter that can be merged into the weights", got, _REMEDY))
    return merged, f"with the {kind} adapter that lies beside its weights, merged into them"
