"""Exit codes: one list for every command."""

__all__ = ["EXIT_CODES", "exit_codes"]

EXIT_CODES = {
    0: "done, or ended by its budget with valid results",
    1: "a claim did not hold, or a part of the run failed",
    2: "bad input: one line says what was expected, what came, what to do",
    130: "stopped by Ctrl-C; a run is valid, and 'lmreach resume' goes on",
    143: "stopped by SIGTERM; likewise",
}


def exit_codes() -> str:
    """Return the list as text."""
    return "\n".join(f"  {code:>3}  {meaning}" for code, meaning in EXIT_CODES.items())
