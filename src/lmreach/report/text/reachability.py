"""Whether one output can be produced, as lines."""

from collections.abc import Iterator
from pathlib import Path

from lmreach.results.answers import ReachabilityResults

__all__ = ["reachability_lines"]


def reachability_lines(found: ReachabilityResults) -> Iterator[str]:
    """Give the verdict with its reason, how far each search came, and where the proof is."""
    yield f"{found.verdict}: {found.reason}"
    for attempt in found.tried:
        yield f"  m = {attempt.m}: longest start {attempt.longest_start} of {found.tokens} tokens"
    if found.certificate is not None:
        yield f"certificate: {(found.folder or Path()) / found.certificate}"
