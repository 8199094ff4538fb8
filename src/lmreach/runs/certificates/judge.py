"""Somebody's own vectors against the model: how far a method is from what is possible."""

from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float, Int
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from lmreach.config.within import parse_within
from lmreach.errors import InputError, problem
from lmreach.experiments.cramming.information import target_bits
from lmreach.experiments.cramming.regions.base import VectorSet
from lmreach.experiments.cramming.regions.build import held_by
from lmreach.experiments.targets import files as target_files
from lmreach.identity import require_same
from lmreach.models.decode import emitted_prefix, greedy
from lmreach.models.frame import NO_FRAME, PromptFrame
from lmreach.models.loaded import LoadedModel
from lmreach.results import StudyResults, open_results
from lmreach.results.certificates import JudgedCurve, JudgedLimit, Judgement
from lmreach.runs.held_limit import held_limit
from lmreach.runs.model_limits import model_limits
from lmreach.stats.information import Information

_NAMES = ("vectors", "prompt_embeddings")


def read_vectors(path: Path) -> tuple[Float[np.ndarray, "m d"], int]:
    """Return vectors of shape (m, d) in float32, and the bits per value that they were stored in.

    Parameters
    ----------
    path
        A ``.npy`` file, a ``.safetensors`` file (the tensor ``vectors`` or ``prompt_embeddings``, or its only
        one with two axes), or the folder of a PEFT prompt-tuning adapter.

    Raises
    ------
    InputError
        None of these, other axes than two, or numbers that are not finite.
    """
    if path.is_dir():
        path = path / "adapter_model.safetensors"
    if not path.is_file():
        raise InputError(problem("a file of vectors", f"'{path}', which is none", "check the path"))
    try:
        given = _array(path) if path.suffix == ".npy" else _only_matrix(path)
    except (ValueError, TypeError, OSError, EOFError, SafetensorError) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise InputError(
            problem("vectors as .npy, .safetensors or a PEFT adapter", f"'{path.name}': {reason}", "convert")
        ) from error
    if given.ndim != 2 or given.numel() == 0 or not given.is_floating_point():
        dtype = str(given.dtype).removeprefix("torch.")
        got = f"{dtype} of shape {tuple(given.shape)} in '{path.name}'"
        raise InputError(problem("floating-point vectors of shape (m, d)", got, "reshape them"))
    if not torch.isfinite(given.double()).all():
        raise InputError(problem("finite vectors", f"NaN or infinities in '{path.name}'", "check them"))
    if not torch.isfinite(given.float()).all():
        largest = float(given.abs().max())
        got = f"one of {largest:.3g} in '{path.name}'"
        raise InputError(problem("coordinates that float32 holds", got, "scale them"))
    return given.float().numpy(), 8 * given.dtype.itemsize


def _array(path: Path) -> Tensor:
    """Read one array; a file of several, or of objects, is refused."""
    array = np.load(path, allow_pickle=False)
    if not isinstance(array, np.ndarray):
        raise ValueError(f"several arrays ({', '.join(array.files) or 'none'}), an .npz by its content")
    return torch.from_numpy(np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("=")))


def _only_matrix(path: Path) -> Tensor:
    # By way of torch: numpy has neither bfloat16 nor float8, which tuning writes.
    tensors: dict[str, Tensor] = load_file(path)
    for name in _NAMES:
        if name in tensors:
            return tensors[name]
    matrices = [name for name, tensor in tensors.items() if tensor.ndim == 2]
    if len(matrices) != 1:
        raise ValueError(f"{len(matrices)} tensors with two axes and none named {' or '.join(_NAMES)}")
    return tensors[matrices[0]]


def read_target(model: LoadedModel, kind: str) -> Int[np.ndarray, " n"]:
    """Return the ids of the whole text of ``text:FILE``, or the first line of ``ids:FILE``.

    Raises
    ------
    InputError
        Another kind, or a file that cannot be read.
    """
    word, _, rest = kind.partition(":")
    if word not in ("text", "ids") or not rest:
        raise InputError(problem("--target text:FILE or ids:FILE", repr(kind), "name one of these"))
    path = Path(rest).expanduser()
    content = target_files.read(path, word)
    if word == "text":
        ids = model.encode(content.rstrip("\n"))
        if not len(ids):
            raise InputError(problem("a text with tokens", f"none in '{path.name}'", "put text into it"))
        return model.check_ids(ids)
    lines = target_files.lines_of_ids(content)
    if not lines:
        raise InputError(problem("a line of ids", f"none in '{path.name}'", "write ids into it"))
    number, line = lines[0]
    return target_files.ids_of_line(model, line, path.name, number)


def judge(
    model: LoadedModel,
    vectors: Float[np.ndarray, "m d"],
    ids: Int[np.ndarray, " n"],
    *,
    stored_bits: int = 32,
    frame: PromptFrame = NO_FRAME,
    run: Path | None = None,
    limit_dtype: str = "float16",
    within: str = "",
) -> Judgement:
    """Judge vectors by what greedy decoding makes of them.

    Parameters
    ----------
    vectors
        Shape (m, d), in the space of ``inputs_embeds``.
    ids
        The target; what the context does not hold after the vectors is left out, as cramming leaves it out.
    stored_bits
        Per value, for the byte ratio.
    frame
        Fixed ids around the vectors.
    run
        Folder of a study on the same model: its curves are what the vectors are compared with.
    within
        What the vectors are held to, see `lmreach.config.within`; its own limit stands among the others.

    Raises
    ------
    InputError
        Vectors of another width than the model's, more of them than its context holds, or vectors outside
        of ``within``.
    OutputError
        The run is of another model.
    """
    given = torch.from_numpy(vectors).to(model.device)
    context, whole = model.facts.context, len(ids)
    if context is not None:
        ids = ids[: max(1, context - len(vectors) - frame.length)]
    set_of = held_by(parse_within(within), model, _of_width(model, given)) if within else None
    emission = emitted_prefix(model, given, ids, frame=frame)
    wanted, emitted = None, None
    if emission.reach < len(ids):
        out = greedy(model, given, emission.reach + 1, frame=frame).ids
        wanted, emitted = model.text(ids[emission.reach : emission.reach + 1]), model.text(out[-1:])
    bits = target_bits(model, given, ids, frame=frame)
    m, d = vectors.shape
    held = Information(
        tokens=len(ids), vectors=m, width=d, vocab=model.facts.usable, bits_per_value=stored_bits
    )
    return Judgement(
        m=m,
        n=len(ids),
        cut_from=whole if len(ids) < whole else None,
        reach=emission.reach,
        smallest_gap=emission.smallest_gap,
        wanted_next=wanted,
        emitted_next=emitted,
        bits_without=bits.without,
        bits_with=bits.with_vectors,
        bits_per_coordinate=bits.gained / (m * d),
        bits_vectors=held.bits_vectors if set_of is None else round(m * set_of.bits),
        bits_ids=held.bits_ids,
        limits=_limits(model, emission.reach, m, limit_dtype, set_of),
        curve=() if run is None else _curve(model, run, emission.reach, m),
    )


def _of_width(model: LoadedModel, vectors: Float[Tensor, "m d"]) -> Float[Tensor, "m d"]:
    d = model.facts.width
    if vectors.shape[1] != d:
        got = f"{vectors.shape[1]}"
        raise InputError(problem(f"vectors of width {d}", got, "use this model's own vectors"))
    return vectors


def _limits(
    model: LoadedModel, reach: int, m: int, dtype: str, held: VectorSet | None
) -> tuple[JudgedLimit, ...]:
    own = () if held is None else (held_limit(held, vocab=model.facts.usable),)
    return tuple(
        JudgedLimit.from_object(
            limit,
            longest_fully_possible=limit.longest_fully_possible(m),
            reached_share=reach / (m * limit.tokens_per_vector),
        )
        for limit in (*own, *model_limits(model, dtype=dtype))
    )


def _curve(model: LoadedModel, run: Path, reach: int, m: int) -> tuple[JudgedCurve, ...]:
    results = open_results(run)
    measured = results.provenance.fingerprint or "none"
    require_same(measured, model.facts.fingerprint, where=f"'{run.name}'", remedy="name another run")
    return tuple(
        JudgedCurve(
            target=entry.target,
            m=m,
            strings=entry.strings,
            n50=entry.n50.value,
            max_steps=entry.max_steps,
            share_at_least_as_far=float(np.mean([far >= reach for far in entry.reaches])),
        )
        for entry in (results.accessibility if isinstance(results, StudyResults) else ())
        if entry.m == m and entry.reaches  # trials at single lengths have no reaches
    )
