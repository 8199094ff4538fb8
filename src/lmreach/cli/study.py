"""The main job."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from lmreach.cli.options import (
    Cram,
    Fresh,
    Json,
    Load,
    NoProgress,
    Out,
    Quiet,
    TargetKinds,
    Vectors,
    seconds,
    share,
)
from lmreach.config import CramConfig, LoadConfig, StudyConfig


def study(
    model: str,
    /,
    *,
    budget: Annotated[
        str, Parameter(help="Time for the whole run: 90s, 5m, 1h, or none for no limit.")
    ] = "5m",
    vectors: Vectors = None,
    targets: TargetKinds = None,
    width: Annotated[
        str,
        Parameter(
            help="Relative width (0.1: 10 %) at which n50 and slope are known well enough and a cell "
            "ends early; none: run all strings."
        ),
    ] = "0.1",
    limit_dtype: Annotated[
        str, Parameter(help="Number format whose roundoff sets eps in the limits.")
    ] = "float16",
    support_positions: Annotated[int, Parameter(help="Hidden states to measure; 0: none.")] = 8192,
    decoder_cells: Annotated[
        bool,
        Parameter(
            name="--cells", help="Decoder cells (shares, unreachable tokens, map) and a census of outputs."
        ),
    ] = True,
    with_copy: Annotated[
        bool, Parameter(help="Ask the model to copy random strings, too (see lmreach copy).", negative="")
    ] = False,
    out: Out = None,
    fresh: Fresh = False,
    load: Load = LoadConfig(),
    cram: Cram = CramConfig(),
    json: Json = False,
    quiet: Quiet = False,
    no_progress: NoProgress = False,
) -> int:
    """Measure how many outputs a model can be made to produce, beside the limits from theory.

    Computes the limits from the weights, measures the support of hidden states, optimises prompt vectors
    at several m for random and self-sampled targets, and writes a run folder with report.html,
    results.json, the ledger and a certificate for every reached string. It plans to fit its budget.

    Parameters
    ----------
    model
        Hugging Face id, folder, .gguf file, or builtin:verse / builtin:random.
    """
    from lmreach.cli.running import watch
    from lmreach.engine.provenance import command_line
    from lmreach.runs.study.run import run_study

    config = StudyConfig(
        model=model,
        load=load,
        budget_s=seconds(budget),
        relative_width=share(width),
        limit_dtype=limit_dtype,
        support_positions=support_positions,
        decoder_cells=decoder_cells,
        copying=with_copy,
        cram=cram,
        m=StudyConfig.model_fields["m"].default if vectors is None else tuple(vectors),
        targets=StudyConfig.model_fields["targets"].default if targets is None else tuple(targets),
    )
    folder = None if out is None else Path(out)
    return watch(
        lambda progress, stop: run_study(
            config, folder, command=command_line(), progress=progress, stop=stop, fresh=fresh
        ),
        quiet=quiet,
        no_progress=no_progress,
        json=json,
    )
