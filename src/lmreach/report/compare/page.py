"""The page of a comparison: one self-contained HTML file."""

from pathlib import Path

from altair.utils.schemapi import debug_mode
from markupsafe import Markup

from lmreach.files import write_whole
from lmreach.report.compare import figures, words
from lmreach.report.compare.export import FORMS, table_text
from lmreach.report.compare.tables import apart, by_condition
from lmreach.report.html import Drawn, environment, page_script, script_hash
from lmreach.report.kit import embed
from lmreach.report.kit.format import plain
from lmreach.results.compare import Comparison

__all__ = ["comparison_page", "write_comparison"]


@debug_mode(False)  # as the page of a study
def comparison_page(compared: Comparison) -> str:
    """Return the page as text."""
    across = figures.width_figure(compared)
    entries, published = apart(compared)
    return (
        environment()
        .get_template("compare.html.jinja")
        .render(
            compared=compared,
            title=words.title(compared),
            headline=words.headline(compared),
            warnings=[words.warning(one) for one in compared.warnings],
            notes=[words.warning(one) for one in compared.differences if not one.serious],
            differ=", ".join(one.what for one in compared.warnings),
            entries=entries,
            published=published,
            conditions=by_condition(compared),
            growth=[Drawn.of(one) for one in figures.growth_figures(compared)],
            stored=[Drawn.of(one) for one in figures.stored_figures(compared)],
            widths=None if across is None else Drawn.of(across),
            curves=[Drawn.of(one) for one in figures.curve_figures(compared)],
            markdown=_lines(table_text(compared, "markdown")),
            latex=_lines(table_text(compared, "latex")),
            script=Markup(page_script()),  # noqa: S704  (our own file)
            script_hash=script_hash(),
            json_text=embed.script_text(compared.model_dump(mode="json")),
        )
    )


def _lines(text: str) -> Markup:
    """Mark up text whose lines stay lines; what cannot be printed is written as escapes."""
    return Markup("\n").join(plain(line) for line in text.split("\n"))


def write_comparison(compared: Comparison, folder: Path) -> list[Path]:
    """Write the page, its tables and everything as JSON into a folder, and return the paths.

    Raises
    ------
    OutputError
        Something cannot be written.
    """
    texts = {
        "compare.html": comparison_page(compared),
        **{f"table.{ending}": table_text(compared, form) for form, ending in FORMS.items()},
        "comparison.json": compared.to_json(),
    }
    for name, text in texts.items():
        write_whole(folder / name, text)
    return [folder / name for name in texts]
