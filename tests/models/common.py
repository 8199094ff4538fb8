"""What several model tests share."""

import torch
from torch import Tensor

from lmreach.models.load import LoadedModel, load
from lmreach.models.tiny import tiny, tiny_tokenizer


def loaded_tiny(family: str, *, tokenizer: bool = False, seed: int = 0, **overrides) -> LoadedModel:
    model = tiny(family, seed=seed, **overrides)
    return load(
        model, tokenizer=tiny_tokenizer(model.config.get_text_config().vocab_size) if tokenizer else None
    )


def random_vectors(loaded: LoadedModel, *shape: int, seed: int = 0) -> Tensor:
    """Vectors of the size of real inputs."""
    generator = torch.Generator().manual_seed(seed)
    return loaded.input_rms * torch.randn(*shape, loaded.facts.width, generator=generator)
