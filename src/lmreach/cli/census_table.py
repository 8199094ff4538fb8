"""Missing sequences as a file."""

from pathlib import Path
from typing import TYPE_CHECKING

from lmreach.files import write_whole

if TYPE_CHECKING:
    from lmreach.results import AnyResults


def write_missing(results: "AnyResults", path: Path) -> None:
    """Write the missing sequences listed in a census, ids separated by spaces, one sequence per line.

    Raises
    ------
    OutputError
        The file cannot be written.
    """
    lines = []
    counted = results.census if results.kind in ("study", "census") else None
    grids = () if counted is None else counted.grids
    for grid in grids:
        if grid.missing is None:
            continue
        what = f"{grid.missing.count} of {grid.missing.of} sequences of {grid.missing.length} tokens"
        lines.append(f"# m = {grid.m}: {what} missing, {grid.missing.listed} listed")
        lines += [" ".join(map(str, ids)) for ids in grid.missing.sequences]
    write_whole(path, "\n".join([*lines, ""]), remedy="choose another place for --missing")
