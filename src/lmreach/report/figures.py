"""All figures of a run, and how they are saved."""

import re
from pathlib import Path

from lmreach.files import write_whole
from lmreach.report.census.section import census_figures
from lmreach.report.copying.section import copying_figures
from lmreach.report.kit import reading
from lmreach.report.kit.drawing import Figure, look, png, svg
from lmreach.report.kit.reading import Record
from lmreach.report.study.curves import accessibility
from lmreach.report.study.growth import growth


def figures(results: Record) -> list[Figure]:
    """Return the figures there are data for: n50 against m, accessibility per kind, census, copying."""
    reading.check(results)
    # A copying run holds limits, but no n50 against m to set them beside.
    first = None if results.get("kind") == "copy" else growth(results)
    counted = census_figures(results["results"].get("census") or {})
    copied = results["results"].get("copying")
    copies = copying_figures(copied, reading.limits(results)) if copied else []
    return ([first] if first else []) + curves(results) + counted + copies


def curves(results: Record) -> list[Figure]:
    """Return one accessibility figure per target kind that has a curve."""
    found = []
    for index, target in enumerate(reading.targets(results)):
        records = reading.of_target(reading.records(results, "accessibility"), target)
        figure = accessibility(records, target, f"accessibility-{index + 1}-{_slug(target)}", look(index))
        if figure:
            found.append(figure)
    return found


def _slug(target: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", target.lower()).strip("-")[:40] or "targets"


def save_figures(results: Record, folder: Path) -> list[Path]:
    """Write each figure as SVG and PNG into ``folder`` (made if missing) and return the paths.

    Raises
    ------
    OutputError
        If the folder cannot be made or written.
    """
    written = []
    for figure in figures(results):
        drawn, picture = folder / f"{figure.name}.svg", folder / f"{figure.name}.png"
        write_whole(drawn, svg(figure.wide))
        write_whole(picture, png(figure.wide))
        written += [drawn, picture]
    return written
