"""Models that many tests share; all are built in or random, none needs a download."""

import numpy as np
import pytest
import torch

from lmreach.models.load import load
from lmreach.models.loaded import LoadedModel

torch.set_num_threads(1)


@pytest.fixture(scope="session")
def random_model() -> LoadedModel:
    """The untrained built-in: quick, no tokenizer."""
    return load("builtin:random")


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)
