"""How far a run is, in words."""

from collections.abc import Iterator

from lmreach.results.status import PartStatus, RunStatus

__all__ = ["status_lines"]


def status_lines(status: RunStatus) -> Iterator[str]:
    """Return the lines that ``lmreach status`` prints."""
    yield f"{status.kind} of {status.model or 'a model trained here'}"
    for part in status.parts:
        yield _part(part)
    if status.state == "running":
        yield f"running: {status.writer} writes to it"
        return
    for failed in status.failed:
        yield f"failed: {failed}"
    for left in status.left:
        yield f"{'open' if left.open else 'not needed'}: {left.what} ({left.why})"
    if not status.came_to_its_end:
        yield f"it has not come to its end; go on with: {status.go_on}"
    else:
        yield f"go on with: {status.go_on}" if status.go_on else "nothing left to do"


def _part(part: PartStatus) -> str:
    if part.ended is not None:
        return f"{part.name} {'ended' if part.ended else 'stopped'} after {part.done} {part.noun}s"
    if part.of is not None:
        return f"{part.name}: {part.done} of {part.of} {part.noun}s"
    if part.noun == "trial":
        return f"{part.name}: {part.done} trials; the grid ends where almost no string is reached"
    return f"{part.name}: {part.done} {part.noun}{'' if part.done == 1 else 's'}"
