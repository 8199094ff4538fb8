"""The command line: one command per public function, each imported only when it is called."""

import os
import sys
import time
import traceback
from collections.abc import Sequence

from cyclopts import App, CycloptsError, Parameter
from pydantic import ValidationError

from lmreach import __version__
from lmreach.cli.codes import exit_codes
from lmreach.cli.console import show_anything
from lmreach.cli.examples import epilogue
from lmreach.cli.help import explain
from lmreach.cli.words import check, check_numbers, said
from lmreach.config.given import explained
from lmreach.errors import LmreachError, out_of_memory, problem

BEGUN = time.monotonic()
"""When the command began: a budget holds from here, before torch is imported."""

_HELP = """Which outputs can a language model be made to produce, how many, and how long can they get?

MODEL is a Hugging Face id, a folder, a .gguf file, or builtin:verse / builtin:random.
"""

_EPILOGUE = f"""Begin with: lmreach study builtin:verse --budget 2m

Any command takes --config FILE.toml (names as here; the command line wins;
see lmreach config show) and --debug, which shows a stack trace. With NO_COLOR
set, nothing is coloured. Exit codes:
{exit_codes()}
"""


def _worth_showing(default: object) -> str | None:
    """Return a default as help shows it; that nothing is given, or that a flag is not set, needs no word."""
    return None if default in ((), [], "", None, False) else str(default)


app = App(
    name="lmreach",
    help=_HELP,
    help_epilogue=_EPILOGUE,
    version=__version__,
    help_format="plaintext",
    result_action="return_value",
    default_parameter=Parameter(show_default=_worth_showing),
)
# Each is a module of this package, and the function in it of the same name (with _ for -).
COMMANDS = {
    "study": "The main job: limits and measurement side by side, in one report.",
    "bounds": "Limits from theory, from a model or from four numbers.",
    "support": "Where final hidden states lie, measured; for bounds --support.",
    "cells": "How big each token's cell is, which tokens can never win, and a map.",
    "paper": "The published table beside our limits.",
    "cram": "Optimise prompt vectors until greedy decoding emits the target.",
    "census": "Count the outputs: exactly on tiny models, over all one-token prompts on real ones.",
    "copy": "Train a model to copy, or take one as it is, and find the length at which it fails.",
    "compare": "Several studies in one table and on one page.",
    "export-table": "The table of one or several studies as CSV, Markdown or LaTeX.",
    "verify": "Decode every certificate of a run again.",
    "decode": "The text that a certificate's vectors emit.",
    "judge": "Your own vectors against what is possible.",
    "export": "A certificate as a PEFT adapter or safetensors; the trials of a run as a table.",
    "plan": "What a study would measure, for how long, in how much memory.",
    "resume": "Go on with an interrupted or budget-limited run.",
    "merge": "Runs that each did a part of one plan, as one run.",
    "status": "How far a run is.",
    "report": "Render the report of a run again.",
    "cache": "List or delete converted .gguf models.",
}
for _name, _summary in COMMANDS.items():
    _module = _name.replace("-", "_")
    app.command(
        f"lmreach.cli.{_module}:{_module}",
        name=_name,
        help=_summary,
        help_epilogue=epilogue(_name),
        sort_key=list(COMMANDS).index(_name),
        validator=check,
    )
# Those that ask nothing of a model.
OTHERS = {
    "config": "Settings of a command, as a file for --config.",
    "help": "The help of a command; 'help exit-codes': what commands return.",
    "completion": "A script with which your shell completes commands and options.",
}
for _name, _summary in OTHERS.items():
    app.command(f"lmreach.cli.{_name}:{_name}", name=_name, help=_summary)


def main(argv: Sequence[str] | None = None) -> None:
    """Run the command line and exit with one of `EXIT_CODES`."""
    show_anything()
    words = list(sys.argv[1:] if argv is None else argv)
    debug = "--debug" in words
    words = [word for word in words if word != "--debug"]
    try:
        code: object = _run(words)
    except CycloptsError as error:
        code = _refuse(said(error, words), debug)
    except ValidationError as error:
        code = _refuse(explained(error), debug)
    except LmreachError as error:
        code = _refuse(str(error), debug)
    except KeyboardInterrupt:
        print("lmreach: interrupted", file=sys.stderr)
        code = 130
    except (MemoryError, RuntimeError) as error:
        if not out_of_memory(error):
            raise
        wanted = "memory for this model and question"
        remedy = "use a smaller --batch-size, fewer vectors, --dtype bfloat16, or a larger machine"
        code = _refuse(problem(wanted, str(error) or "none left", remedy), debug)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 0
    sys.exit(code if isinstance(code, int) else 0)


def _run(words: list[str]) -> object:
    app.config = (check_numbers,)
    if {"--help", "-h"} & set(words):
        explain(words[0])
    if any(word.partition("=")[0] == "--config" for word in words) and words[0] in COMMANDS:
        from lmreach.cli.config import function_of, kinds_of
        from lmreach.cli.toml import from_file, models_in, without_file

        words, file = without_file(words)
        assert file is not None
        if words[0] == "study":
            words = [words[0], *models_in(file), *words[1:]]
        app.config = (check_numbers, from_file(file, kinds_of(function_of(words[0]))))
    return app(words, exit_on_error=False, print_error=False)


def _refuse(message: str, debug: bool) -> int:
    if debug:
        traceback.print_exc()
    print(f"lmreach: {_one_line(message)}", file=sys.stderr)
    return 2


def _one_line(text: str) -> str:
    return " ".join(text.split())
