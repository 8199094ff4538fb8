"""Converted models kept on disk."""

from typing import Annotated

from cyclopts import Parameter


def cache(
    *, clear: Annotated[bool, Parameter(negative="", help="Delete every converted model.")] = False
) -> int:
    """List the converted .gguf models kept on disk, with their sizes; --clear deletes them."""
    from lmreach.models import cache as kept

    entries = kept.entries()
    for entry in entries:
        print(f"{entry.size / 1e6:8.0f} MB  {entry.name}  {entry.folder}")
    total = sum(entry.size for entry in entries) / 1e6
    if clear:
        kept.clear()
        print(f"deleted {len(entries)} converted models ({total:.0f} MB) from {kept.root()}")
    else:
        print(f"{len(entries)} converted models, {total:.0f} MB in {kept.root()}")
    return 0
