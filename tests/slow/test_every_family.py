"""Every family that transformers builds small, through the command line: works, or one line says why.

Each has a study of 20 seconds, or of what ``LMREACH_FAMILY_BUDGET`` says (5s): all of them then take half an
hour rather than two.

What is refused, and by which check, is written down here: a family of a later release that is refused, or one
that no longer is, is seen.
"""

import json
import os
import re
from pathlib import Path

import pytest
import torch

from lmreach.cli import main
from lmreach.models.checks import CALL_ERRORS
from lmreach.models.load import load
from lmreach.models.quiet import quiet
from tests.models.common import random_vectors
from tests.models.every_family import FAMILIES, build

pytestmark = pytest.mark.slow

BUDGET = os.environ.get("LMREACH_FAMILY_BUDGET", "20s")

NOT_BUILT = {
    "dbrx": "its attention config lacks rope_theta",
    "dots3_note": "parts for pictures and sound whose sizes hang on each other",
    "gemma3n": "its part for pictures needs packages",
    "gemma4_assistant": "shares states with another model",
    "musicgen": "its decoder is no config of its own",
    "musicgen_melody": "its decoder is no config of its own",
}
"""Families of which no small model can be made from the config class alone, and why."""

REFUSED = {
    "blt": "check 'the model runs on ids' failed",
    "cpmant": "check 'one module turns ids into vectors' failed",
    "deepseek_v4": "check 'vectors can be handed in' failed",
    "dory": "check 'logits are a scaled linear map of the final state' failed",
    "emu3": "expected a causal language model",  # saved, it is the text part of something else
    "gemma3n_text": "check 'ids and vectors agree' failed",
    "gemma4": "check 'vectors can be handed in' failed",
    "gemma4_text": "check 'free vectors can be handed in' failed",
    "gemma4_unified": "check 'vectors can be handed in' failed",
    "gemma4_unified_assistant": "check 'the model runs on ids' failed",
    "mllama": "expected a causal language model",
    "prophetnet": "check 'one module makes the logits' failed",
    "reformer": "check 'gradients reach the vectors' failed",
    "xlm": "check 'a later token changes no earlier logits' failed",
    "xlnet": "check 'one module turns ids into vectors' failed",
}
"""Families that cannot be measured -> words of the line that says so."""


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[object, str]:
    """Type a command; return its exit code and what stands in its last line of errors."""
    with pytest.raises(SystemExit) as end:
        main([*words, "--no-progress"] if words[0] != "bounds" else [*words])
    said = capsys.readouterr().err
    assert "Traceback" not in said
    lines = [line for line in said.splitlines() if line.startswith("lmreach: ")]
    return end.value.code, lines[-1] if lines else ""


@pytest.fixture(scope="module", params=FAMILIES)
def family(request, tmp_path_factory) -> tuple[str, Path]:
    name = request.param
    if name in NOT_BUILT:
        pytest.skip(f"no small {name}: {NOT_BUILT[name]}")
    folder = tmp_path_factory.mktemp("family") / re.sub(r"\W+", "-", name)
    with quiet():
        build(name).save_pretrained(folder)
    return name, folder


def test_it_is_measured_or_refused_in_one_line(family, tmp_path, capsys):
    name, folder = family
    commands = (
        ("bounds", str(folder)),
        ("cells", str(folder), "--measure", "empirical", "--samples", "1000"),
        ("cram", str(folder), "-m", "2", "--strings", "1", "--max-steps", "10", "--out", str(tmp_path / "c")),
        ("study", str(folder), "--budget", BUDGET, "--out", str(tmp_path / "s")),
    )
    for words in commands:
        code, line = run(capsys, *words)
        if name in REFUSED and words[0] != "bounds":  # limits are read from one narrow block, which may run
            assert code == 2
            assert REFUSED[name] in line
        elif name in REFUSED:
            assert code in (0, 2)
        else:
            assert (code, line) == (0, "")
    if name not in REFUSED:
        results = json.loads((tmp_path / "s" / "results.json").read_text())
        assert results["model"]["family"] == json.loads((folder / "config.json").read_text())["model_type"]


def test_its_context_is_what_the_code_allows(family):
    """At the limit a pass is finite. One position more fails where positions come from a table."""
    name, folder = family
    if name in REFUSED:
        pytest.skip(f"{name} is refused")
    loaded = load(folder)
    context = loaded.facts.context
    with torch.no_grad():
        assert torch.isfinite(loaded.logits(random_vectors(loaded, 1, context or 300))).all()
        if context is None or context == 64:  # 64 is what every small config states
            return
        with pytest.raises(CALL_ERRORS):
            loaded.logits(random_vectors(loaded, 1, context + 1))
