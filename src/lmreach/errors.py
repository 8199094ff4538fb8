"""The few ways a run may refuse: each message says what was expected, what came, and what to do."""


class LmreachError(Exception):
    """Base of all errors that a user can act on; the command line shows them as one line, exit code 2."""

    exit_code = 2


class InputError(LmreachError):
    """An option, a target or a file that cannot be used as given."""


class ModelError(LmreachError):
    """A model that cannot be found, is incomplete, or fails one of the probes (named in the message)."""


class OutputError(LmreachError):
    """A run folder or file that cannot be written or read."""


def problem(expected: str, got: str, remedy: str) -> str:
    """Compose the one-line message that every error of this package carries."""
    return f"expected {expected}; got {got}; {remedy}"
