"""Converted models kept on disk."""

from json import dumps
from typing import Annotated

from cyclopts import Parameter

from lmreach.cli.options import Json


def cache(
    *,
    clear: Annotated[bool, Parameter(negative="", help="Delete every converted model.")] = False,
    json: Json = False,
) -> int:
    """List the converted .gguf models kept on disk, with their sizes; --clear deletes them."""
    import lmreach.models.cache as kept

    if json:
        print(dumps(kept.as_rows(), indent=1))
        return 0
    entries = kept.entries()
    for entry in entries:
        print(f"{entry.size / 1e6:8.0f} MB  {entry.name}  {entry.folder}")
    total = sum(entry.size for entry in entries) / 1e6
    if clear:
        freed = kept.clear() / 1e6
        print(f"deleted {len(entries)} converted models ({freed:.0f} MB) from {kept.root()}")
    else:
        print(f"{len(entries)} converted models, {total:.0f} MB in {kept.root()}")
    return 0
