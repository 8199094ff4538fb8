"""How many positions a model takes: what its config says, and what its position tables hold.

Configs call it by many names, some of them count rows that are never used, and some say nothing, so
the code is watched as well: a table of positions is a tensor of the model of which a pass of T positions
reads T consecutive rows, for two different T.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from transformers import PreTrainedModel

from lmreach.models.checks import CALL_ERRORS

__all__ = ["context_limit", "table_limit"]

_STATED = (
    "max_position_embeddings",
    "n_positions",
    "n_ctx",
    "max_seq_len",
    "seq_length",
    "max_sequence_length",
    "max_target_positions",
    "context_length",
)
_SHORT, _LONG = 5, 7

Run = Callable[[Float[Tensor, "1 length d"]], Any]


def context_limit(
    model: PreTrainedModel, run: Run, table: nn.Module, like: Float[Tensor, "1 length d"]
) -> int | None:
    """Return the longest sequence in positions; None where neither config nor code has a limit.

    Parameters
    ----------
    run
        A pass of the model over vectors.
    table
        Its token table, which is none of positions.
    like
        Some input vectors.

    Notes
    -----
    Where both are known, the smaller holds: RoBERTa states 512 and leaves the first rows of its table to
    padding, OPT's table has 2 rows more than positions. Rotary positions have no table, so the stated length
    is the one the model was trained for.
    """
    stated, held = _stated(model), table_limit(model, run, table, like)
    if held is None or (stated is not None and stated <= held):
        return stated
    return held if _is_last(run, like, held) else stated


def _is_last(run: Run, like: Float[Tensor, "1 length d"], limit: int) -> bool:
    """Whether one position more is too many: some tables hold a block of positions, used again and again."""
    try:
        with torch.no_grad():
            run(like[:, :1].expand(1, limit + 1, like.shape[-1]).clone())
    except CALL_ERRORS:
        return True
    return False


def _stated(model: PreTrainedModel) -> int | None:
    settings = model.config.get_text_config(decoder=True)
    values = [getattr(settings, name, None) for name in _STATED]
    return next((v for v in values if isinstance(v, int) and not isinstance(v, bool) and v > 0), None)


def table_limit(
    model: nn.Module, run: Run, table: nn.Module, like: Float[Tensor, "1 length d"]
) -> int | None:
    """Return how many positions the shortest table of positions holds; None where the code reads none."""
    token_table: Tensor = table.weight  # type: ignore[assignment]
    tensors = {t.untyped_storage().data_ptr() for t in _tensors(model)}
    tensors.discard(token_table.untyped_storage().data_ptr())
    reads = []
    for length in (_SHORT, _LONG):
        vectors = like[:, :1].expand(1, length, like.shape[-1]).clone()
        with torch.no_grad(), _Reads(tensors, length) as seen:
            run(vectors)
        reads.append(seen.limits)
    both = set(reads[0]) & set(reads[1])
    return min((reads[0][key] for key in both if reads[0][key] == reads[1][key]), default=None)


def _tensors(model: nn.Module) -> list[Tensor]:
    """Return parameters, buffers and tensors that modules keep without registering them (as CTRL does)."""
    plain = [v for module in model.modules() for v in vars(module).values() if isinstance(v, Tensor)]
    return [*model.parameters(), *model.buffers(), *plain]


@dataclass(frozen=True)
class _Table:
    storage: int
    rows: int


class _Reads(TorchDispatchMode):
    """Notes which tensors were read by position, and how many positions each holds."""

    def __init__(self, tensors: set[int], length: int) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._tensors, self._length = tensors, length
        self.limits: dict[_Table, int] = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        read = _read(func._overloadpacket, args)
        if read is not None and read[0].untyped_storage().data_ptr() in self._tensors:
            source, rows, indices = read
            first = _first(indices, self._length)
            if first is not None:
                key = _Table(source.untyped_storage().data_ptr(), rows)
                limit = rows - first
                self.limits[key] = min(limit, self.limits.get(key, limit))
        return func(*args, **(kwargs or {}))


def _read(operation: Any, args: tuple[Any, ...]) -> tuple[Tensor, int, Tensor] | None:
    """Return what is read, its rows, and which of them, for the ways in which code looks up positions."""
    aten = torch.ops.aten
    if operation is aten.embedding:
        return args[0], args[0].shape[0], args[1]
    if operation is aten.index_select:
        return args[0], args[0].shape[args[1]], args[2]
    if operation is aten.index:
        given = [(axis, each) for axis, each in enumerate(args[1]) if each is not None]
        if len(given) == 1 and not given[0][1].is_floating_point():
            return args[0], args[0].shape[given[0][0]], given[0][1]
    if operation is aten.gather:
        source, axis, indices = args[:3]
        return source, source.shape[axis], indices.movedim(axis, -1).reshape(-1, indices.shape[axis])[0]
    if operation is aten.slice:
        source, axis, start, end = (*args, *(0, None, None)[len(args) - 1 :])[:4]
        rows = source.shape[axis]
        read = torch.arange(rows)[start:end]
        # Some take the last rows of the table (MPT's distances): then all of them are to be had.
        return source, rows, read - read[0] if len(read) and int(read[-1]) == rows - 1 else read
    return None


def _first(indices: Tensor, length: int) -> int | None:
    """Return the first of ``length`` consecutive indices, or None where they are not that."""
    if indices.numel() == 0 or indices.shape[-1] != length or indices.dtype == torch.bool:
        return None
    rows = indices.reshape(-1, length)
    first = int(rows[0, 0])
    steps = torch.arange(first, first + length, device=indices.device)
    return first if bool((rows == steps).all()) else None
