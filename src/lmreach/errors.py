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


_OUT_OF_MEMORY = (
    "out of memory",  # CUDA, HIP, XPU, MPS
    "can't allocate memory",  # torch on a CPU
    "not enough memory",
    "bad allocation",
    "No executable batch size found",  # accelerate, after one row was too many
)


def out_of_memory(error: BaseException) -> bool:
    """Say whether an error means that memory ran out, on whatever device and in whatever library."""
    if isinstance(error, MemoryError):
        return True
    text = str(error)
    return isinstance(error, RuntimeError) and any(words in text for words in _OUT_OF_MEMORY)
