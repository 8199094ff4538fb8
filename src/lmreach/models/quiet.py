"""Keep what the loading libraries print away from the user: log lines are collected, progress bars off."""

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from transformers.utils import logging as hf_logging

_LIBRARIES = ("transformers", "huggingface_hub", "accelerate")
_log = logging.getLogger(__name__)


class _Collector(logging.Handler):
    """Hand every record to our own debug log, where ``-vv`` shows it."""

    def emit(self, record: logging.LogRecord) -> None:
        _log.debug("%s: %s", record.name, record.getMessage())


@contextmanager
def _redirected(name: str) -> Iterator[None]:
    logger = logging.getLogger(name)
    handlers, propagate = logger.handlers[:], logger.propagate
    logger.handlers, logger.propagate = [_Collector()], False
    try:
        yield
    finally:
        logger.handlers, logger.propagate = handlers, propagate


@contextmanager
def _no_bars() -> Iterator[None]:
    shown = hf_logging.is_progress_bar_enabled()
    hf_logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            hf_logging.enable_progress_bar()


@contextmanager
def quiet() -> Iterator[None]:
    """Silence transformers, huggingface_hub and accelerate while a model is loaded and probed.

    Nothing is lost that matters: what those messages report (missing tensors, ignored settings, ...) is
    checked here on its own and ends as an error or a note.
    """
    first, second, third = _LIBRARIES
    with warnings.catch_warnings(), _redirected(first), _redirected(second), _redirected(third), _no_bars():
        warnings.simplefilter("ignore")
        yield
