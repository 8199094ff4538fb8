"""All figures of a run, and how they are saved."""

import re
from pathlib import Path

from lmreach.files import check_place, write_whole
from lmreach.report.cells.map import save_cell_map
from lmreach.report.cells.ranks import rank_figure
from lmreach.report.census.section import census_figures
from lmreach.report.copying.section import copying_figures
from lmreach.report.kit import reading
from lmreach.report.kit.drawing import Figure, look, png, svg
from lmreach.report.study.curves import accessibility
from lmreach.report.study.growth import growth
from lmreach.report.study.steps import steps_figure
from lmreach.results import AnyResults, CensusResults, CopyResults, ReachabilityResults, StudyResults


def figures(results: AnyResults) -> list[Figure]:
    """Return the figures there are data for: n50 by m and by steps, curves, census, cells, copying."""
    if isinstance(results, CensusResults):
        return census_figures(results.census)
    if isinstance(results, ReachabilityResults):
        return []
    if isinstance(results, CopyResults):
        # It holds limits, but no n50 against m to set them beside.
        return copying_figures(results.copying, reading.limits(results))
    first = growth(results)
    counted = [] if results.census is None else census_figures(results.census)
    copies = [] if results.copying is None else copying_figures(results.copying, reading.limits(results))
    ranks = rank_figure(results.cells.shares) if results.cells and results.cells.shares else None
    cells = [] if ranks is None else [ranks]
    return ([first] if first else []) + steps(results) + curves(results) + counted + cells + copies


def steps(results: StudyResults) -> list[Figure]:
    """Return one figure of n50 against steps per target kind whose strings' growth was recorded."""
    found = []
    for index, target in enumerate(reading.targets(results)):
        records = reading.of_target(results.accessibility, target)
        figure = steps_figure(records, target, f"steps-{index + 1}-{_slug(target)}", look(index))
        if figure:
            found.append(figure)
    return found


def curves(results: StudyResults) -> list[Figure]:
    """Return one accessibility figure per target kind that has a curve."""
    found = []
    for index, target in enumerate(reading.targets(results)):
        records = reading.of_target(results.accessibility, target)
        figure = accessibility(records, target, f"accessibility-{index + 1}-{_slug(target)}", look(index))
        if figure:
            found.append(figure)
    return found


def _slug(target: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", target.lower()).strip("-")[:40] or "targets"


def save_figures(results: AnyResults, folder: Path) -> list[Path]:
    """Write each figure as SVG and PNG into ``folder`` (made if missing) and return the paths.

    Raises
    ------
    OutputError
        If the folder cannot be made or written.
    """
    written = []
    check_place(folder / "figure.svg", remedy="choose another folder")
    for figure in figures(results):
        drawn, picture = folder / f"{figure.name}.svg", folder / f"{figure.name}.png"
        write_whole(drawn, svg(figure.wide))
        write_whole(picture, png(figure.wide))
        written += [drawn, picture]
    if isinstance(results, StudyResults) and results.cells is not None and results.cells.map is not None:
        written += save_cell_map(results.cells.map, folder)
    return written
