"""One short name for a set of weights."""

import hashlib

import torch
from torch import Tensor, nn

_CHUNK = 1 << 24  # elements copied from the device at once


def fingerprint(model: nn.Module) -> str:
    """Return sha256 over names, shapes, dtypes and bytes of all stored tensors, first 16 hex digits.

    A tensor under two names (a tied head) is read once; under the second name only the tie counts.
    """
    digest = hashlib.sha256()
    seen: dict[int, str] = {}
    for name, tensor in model.state_dict(keep_vars=True).items():
        digest.update(f"{name}|{tuple(tensor.shape)}|{tensor.dtype}|".encode())
        first = seen.setdefault(id(tensor), name)
        if first == name:
            _update(digest, tensor)
        else:
            digest.update(f"={first}".encode())
    return digest.hexdigest()[:16]


def _update(digest: "hashlib._Hash", tensor: Tensor) -> None:
    flat = tensor.detach().contiguous().reshape(-1)
    for start in range(0, flat.numel(), _CHUNK):
        piece = flat[start : start + _CHUNK].cpu().contiguous()
        digest.update(piece.view(torch.uint8).numpy().data)
