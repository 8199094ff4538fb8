"""What was copied, as sentences and a table of lengths."""

from collections.abc import Iterator

from lmreach.report.copying.words import sentences
from lmreach.results.copying import CopyResults

__all__ = ["copying_lines"]


def copying_lines(found: CopyResults) -> Iterator[str]:
    """Give the sentences, then how many strings of each length were copied."""
    copying = found.copying
    yield from sentences(copying, found.limits)
    yield ""
    yield f"{'length':>8}{'exact':>14}{'characters':>12}{'first wrong':>13}"
    for length in copying.lengths:
        counted, middle = length.counting(copying.counted), length.first_wrong_quartiles
        right = f"{counted.count} of {counted.of}"
        place = "" if middle is None else f"{middle[1]:g}"
        yield f"{length.length:>8}{right:>14}{length.characters.share:>12.3f}{place:>13}"
