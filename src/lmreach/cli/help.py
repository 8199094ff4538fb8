"""Help as a command."""

import inspect
from difflib import get_close_matches

from lmreach.errors import InputError, problem


def help(command: str | None = None, /) -> int:
    """Show the help of a command, or of all; 'lmreach help exit-codes' lists what a command may return.

    Parameters
    ----------
    command
        Its name, such as study.
    """
    from lmreach.cli import COMMANDS, OTHERS, app
    from lmreach.cli.codes import exit_codes

    if command == "exit-codes":
        print(exit_codes())
        return 0
    known = [*COMMANDS, *OTHERS]
    if command is not None and command not in known:
        near = get_close_matches(command, known, n=1)
        remedy = f"did you mean {near[0]}?" if near else "see lmreach --help"
        raise InputError(problem("the name of a command", repr(command), remedy))
    if command is not None:
        explain(command)
    app.help_print([] if command is None else [command])
    return 0


def explain(command: str) -> None:
    """Let the help of a command say all that its function does; in the list of commands it has one line."""
    from lmreach.cli import COMMANDS, app
    from lmreach.cli.config import function_of

    if command in COMMANDS:
        text, _, _ = (inspect.getdoc(function_of(command)) or "").partition("\nParameters\n")
        app[command].help = "\n\n".join(" ".join(part.split()) for part in text.strip().split("\n\n"))
