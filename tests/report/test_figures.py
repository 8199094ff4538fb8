"""Figures: what is drawn, what is left out, and that hostile names stay text."""

import xml.etree.ElementTree as ElementTree

import pytest

from lmreach.errors import OutputError
from lmreach.report import save_figures
from lmreach.report.figures import figures
from lmreach.report.kit.drawing import svg
from lmreach.report.study.growth import growth

from . import sample

SVG = "{http://www.w3.org/2000/svg}"


def texts(chart):
    return [element.text for element in ElementTree.fromstring(svg(chart)).iter(f"{SVG}text")]


def test_saved_files(tmp_path):
    paths = save_figures(sample.one_m(), tmp_path / "new" / "figures")
    assert [path.name for path in paths] == [
        "n50-by-m.svg",
        "n50-by-m.png",
        "accessibility-1-random.svg",
        "accessibility-1-random.png",
        "accessibility-2-self.svg",
        "accessibility-2-self.png",
    ]
    for path in paths:
        if path.suffix == ".svg":
            assert ElementTree.parse(path).getroot().tag == f"{SVG}svg"
        else:
            assert path.read_bytes().startswith(b"\x89PNG")


def test_a_folder_that_is_a_file_is_one_clear_error(tmp_path):
    (tmp_path / "taken").write_text("")
    with pytest.raises(OutputError, match="choose another folder"):
        save_figures(sample.empty(), tmp_path / "taken")


def test_lines_and_kinds_are_labelled_directly():
    drawn = texts(growth(sample.study()).wide)
    for label in ("norm ellipsoid", "input box", "float32 grid", "ball (paper)", "random", "self"):
        assert label in drawn
    assert "box of hidden states" not in drawn


def test_nothing_to_draw():
    assert figures(sample.empty()) == []
    assert [figure.name for figure in figures(sample.without_answers("no_data"))] == ["n50-by-m"]


@pytest.mark.parametrize(("verdict", "arrow"), [("above_limit", "↑"), ("below_one", "↓")])
def test_n50_beyond_the_range_is_drawn_as_such(verdict, arrow):
    drawn = texts(growth(sample.without_answers(verdict)).wide)
    assert drawn.count(arrow) == 10


def test_labels_of_m_stand_above_the_curves():
    drawn = texts(figures(sample.study())[1].wide)
    assert {"m = 1", "2", "4", "8", "16"} <= set(drawn)


def test_hostile_names_stay_text():
    name = '</script><s onload="x">&"\n\x00\ud83d'
    change = {"limits.1.name": name, "accessibility.0.target": name, "accessibility.1.target": name}
    results = sample.changed(sample.one_m(), change)
    for figure in figures(results):
        root = ElementTree.fromstring(svg(figure.wide))
        assert {element.tag.removeprefix(SVG) for element in root.iter()} <= {
            "svg",
            "g",
            "path",
            "line",
            "text",
            "rect",
        }
        assert not any(
            "href" in key or key.startswith("on") for element in root.iter() for key in element.attrib
        )
