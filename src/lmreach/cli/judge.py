"""Somebody's own vectors against what is possible."""

from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from lmreach.cli.options import Json, Load
from lmreach.config import Bos, LoadConfig

if TYPE_CHECKING:
    from lmreach.results.certificates import Judgement


def judge(
    vectors: str,
    /,
    *,
    model: Annotated[str, Parameter(help="Hugging Face id, folder, .gguf file or builtin:NAME.")],
    target: Annotated[str, Parameter(help="What they should emit: text:FILE or ids:FILE (its first line).")],
    run: Annotated[str | None, Parameter(help="A study of the same model, to compare with.")] = None,
    bos: Annotated[Bos, Parameter(help="Where a start token stands.")] = "none",
    prefix: Annotated[str, Parameter(help="Text before the vectors.")] = "",
    suffix: Annotated[str, Parameter(help="Text between the vectors and the output.")] = "",
    limit_dtype: Annotated[str, Parameter(help="Number format whose roundoff sets eps.")] = "float16",
    within: Annotated[str, Parameter(help="What they are held to, as in cram --within: box, int4, ...")] = "",
    load: Load = LoadConfig(),
    json: Json = False,
) -> int:
    """Judge your own vectors (compressor, gist tokens, prompt tuning): how far they are from the possible.

    Parameters
    ----------
    vectors
        A .npy or .safetensors file of shape (m, d), or the folder of a PEFT prompt-tuning adapter.
    """
    from lmreach.config.within import canonical
    from lmreach.maths.precision import number_format
    from lmreach.runs.certificates.judge import judge as run_judge
    from lmreach.runs.certificates.judge import read_target, read_vectors

    number_format(limit_dtype)
    within = canonical(within)
    given, stored_bits = read_vectors(Path(vectors))
    from lmreach.models.frame import frame_of
    from lmreach.models.load import load as load_model

    loaded = load_model(model, load)
    found = run_judge(
        loaded,
        given,
        read_target(loaded, target),
        stored_bits=stored_bits,
        frame=frame_of(loaded, bos, prefix, suffix),
        run=None if run is None else Path(run),
        limit_dtype=limit_dtype,
        within=within,
    )
    if json:
        print(dumps(found.model_dump(mode="json"), indent=1, allow_nan=False))
    else:
        _print(found)
    return 0


def _print(found: "Judgement") -> None:
    gap = "" if found.smallest_gap is None else f", smallest top-two gap {found.smallest_gap:.3g}"
    print(f"emitted        {found.reach} of {found.n} tokens from {found.m} vectors{gap}")
    if found.cut_from is not None:
        print(f"target         its first {found.n} of {found.cut_from} tokens: the context holds no more")
    if found.wanted_next is not None:
        print(f"then           wanted {found.wanted_next}, came {found.emitted_next}")
    print(
        f"information    {found.bits_without:.1f} bits without the vectors, {found.bits_with:.1f} with them:"
        f" {found.bits_per_coordinate:.4f} bits per coordinate"
    )
    print(
        f"storage        {found.bits_ids:.0f} bits of ids in {found.bits_vectors} bits of vectors:"
        f" {found.bits_ids / found.bits_vectors:.3f}"
    )
    for one in found.curve:
        n50 = "none" if one.n50 is None else f"{one.n50:.1f}"
        print(
            f"cramming       {one.target}, m = {one.m}: n50 {n50};"
            f" {one.share_at_least_as_far:.0%} of {one.strings} strings got as far"
        )
    print("\nreached, of the longest length that each limit leaves fully possible")
    for limit in found.limits:
        note = "" if limit.packing != "convention" else " (a convention, no bound)"
        print(
            f"  {limit.name:<28}{limit.premise:<8}{limit.longest_fully_possible:>8}"
            f"{limit.reached_share:>9.1%}{note}"
        )
