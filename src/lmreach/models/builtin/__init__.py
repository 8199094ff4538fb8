"""Models that need no download: ``verse``, shipped in this package, and ``random``, drawn from a seed."""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import GPTNeoXConfig, GPTNeoXForCausalLM, PreTrainedModel

from lmreach.errors import ModelError, problem

_VERSE = Path(__file__).parent / "verse"
_RANDOM: dict[str, Any] = {
    "hidden_size": 64,
    "intermediate_size": 256,
    "num_attention_heads": 4,
    "num_hidden_layers": 2,
    "vocab_size": 512,
    "max_position_embeddings": 512,
    "bos_token_id": None,
    "eos_token_id": None,
    "pad_token_id": None,
}
_RANDOM_STD, _RANDOM_SEED = 0.3, 20260


def resolve(name: str) -> Path | PreTrainedModel:
    """Return the folder or the model behind ``builtin:NAME``.

    Raises
    ------
    ModelError
        If the shipped folder is not there.
    """
    if name == "random":
        return random_model()
    if not (_VERSE / "config.json").is_file():
        raise ModelError(
            problem(
                "the weights shipped with the package", f"no model in {_VERSE}", "install the package again"
            )
        )
    return _VERSE


def random_model(seed: int = _RANDOM_SEED) -> PreTrainedModel:
    """Return an untrained GPT-NeoX of width 64, 2 blocks and 512 rows; matrices are normal with std 0.3.

    Numbers come from numpy, not torch: torch's normal numbers differ in their last bits between processors,
    and the fingerprint of this model must not.
    """
    rng = np.random.default_rng(seed)
    with torch.random.fork_rng(devices=[]):
        model = GPTNeoXForCausalLM(GPTNeoXConfig(**_RANDOM))
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.ndim == 2:
                values = _RANDOM_STD * rng.standard_normal(tuple(parameter.shape), dtype=np.float32)
                parameter.copy_(torch.from_numpy(values))
            else:
                parameter.fill_(1.0 if "norm" in name and name.endswith("weight") else 0.0)
    model.eval()
    return model
