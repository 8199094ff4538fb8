"""Models that many tests share; all are built in or random, none needs a download."""

from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest
import torch

from lmreach.experiments.cramming import start_cache
from lmreach.models.load import load
from lmreach.models.loaded import LoadedModel

torch.set_num_threads(1)


@pytest.fixture(scope="session", autouse=True)
def starts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Keep what probes find for this session alone: tests neither see nor change the user's."""
    place = tmp_path_factory.mktemp("starts")
    with patch.object(start_cache, "folder", lambda: place):
        yield place


@pytest.fixture(scope="session")
def random_model() -> LoadedModel:
    """The untrained built-in: quick, no tokenizer."""
    return load("builtin:random")


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)
