"""Certificates as they are kept: vectors themselves, or the bit patterns of the format they are held to."""

from pathlib import Path

import numpy as np
from jaxtyping import Float, Int

from lmreach.engine.store import read_tensors
from lmreach.errors import InputError, OutputError, problem
from lmreach.experiments.cramming.regions.build import restore

__all__ = ["read_certificate"]


def read_certificate(path: Path) -> tuple[Float[np.ndarray, "m d"], Int[np.ndarray, " n"], dict[str, str]]:
    """Return the vectors of a certificate file, decoded where they are kept in a format, ids and claim.

    Raises
    ------
    OutputError
        The file is not a certificate, is cut short, or holds what no vector of its format is stored as.
    """
    tensors, ids, claim = read_tensors(path)
    if "within" not in claim:
        if "vectors" not in tensors:
            got = f"'{path.name}' with {', '.join(sorted(tensors))}"
            raise OutputError(
                problem("a certificate (safetensors with vectors and ids)", got, "run it again")
            )
        return tensors["vectors"], ids, claim
    try:
        return restore(tensors, claim, int(claim.get("m", "0")))[1].numpy(), ids, claim
    except (InputError, ValueError) as error:
        got = f"'{path.name}': {error}"
        raise OutputError(
            problem("a certificate whose vectors can be decoded", got, "run it again")
        ) from error
