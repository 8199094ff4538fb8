"""Whether a model will fit before it is brought in."""

from pathlib import Path

import psutil  # type: ignore[import-untyped]
import torch
from torch import nn

from lmreach.errors import ModelError, problem

_GROUP = Path("/sys/fs/cgroup")
_GIB = 2**30


def available_bytes(device: torch.device) -> int:
    """Return free memory on ``device``; on the CPU what is left of a container's limit, if that is less."""
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0])
    free = int(psutil.virtual_memory().available)
    try:
        limit = (_GROUP / "memory.max").read_text().strip()
        used = int((_GROUP / "memory.current").read_text())
    except (OSError, ValueError):
        return free
    return min(free, int(limit) - used) if limit.isdigit() else free


def require(needed: int, device: torch.device, what: str) -> None:
    """Raise a `ModelError` with both numbers if ``needed`` bytes are not free on ``device``."""
    free = available_bytes(device)
    if needed > free:
        raise ModelError(
            problem(
                f"about {needed / _GIB:.1f} GiB of memory for {what}",
                f"{free / _GIB:.1f} GiB free on {device}",
                "use a smaller model, a 16-bit dtype or a machine with more memory",
            )
        )


def bytes_of(model: nn.Module) -> int:
    """Return the memory that a model's weights take, those with several names counted once."""
    return sum(one.numel() * one.element_size() for one in (*model.parameters(), *model.buffers()))
