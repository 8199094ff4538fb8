"""The drawn map: well-formed, safe with any token text, labels inside their cells and apart."""

import itertools
import re
import subprocess
import sys
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lmreach.errors import OutputError
from lmreach.maths.plane import plane_map, rectangle_around
from lmreach.report.cells import map as cell_map
from lmreach.report.kit.drawing import COLOURS, GRID
from lmreach.results.cells import Band, CellMap, MapCell, MapText

SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = ["<b>&", '"]]>', " the", "\n", "   ", "", "\x00\ufffe\u202e", "漢字" * 9, "null", "🙂", "\ud800"]


def record(tokens: list[str], *, seed: int = 0, outline: bool = True) -> CellMap:
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=(len(tokens), 3)) * [1, 2, 2]
    points = np.array([[-1.0, -0.6], [1.0, -0.6], [0.2, 1.2]])
    rectangle = rectangle_around(points)
    found = plane_map(scores, rectangle, (0.2, 0.5))
    winners = (np.column_stack([np.ones(3), points]) @ scores.T).argmax(1)
    turns = np.linspace(0, 2 * np.pi, 40)[:-1]
    return CellMap(
        model="a <model>",
        rectangle=rectangle,
        cells=tuple(
            MapCell(id=c.token, text=tokens[c.token], area=c.area, corners=c.corners.tolist())
            for c in found.cells
        ),
        levels=found.levels,
        bands=tuple(
            tuple(Band(id=c.token, corners=c.corners.tolist()) for c in band) for band in found.bands
        ),
        texts=tuple(
            MapText(text=f"text {i} & more", x=x, y=y, id=int(w), token=tokens[w], margin=0.1)
            for i, ((x, y), w) in enumerate(zip(points.tolist(), winners.tolist(), strict=True))
        ),
        outline=np.column_stack([np.cos(turns), np.sin(turns)]).tolist() if outline else None,
    )


def test_hostile_tokens_are_shown_and_change_nothing() -> None:
    drawn = cell_map.cell_map_svg(record(HOSTILE * 3))
    root = ET.fromstring(drawn)
    said = {node.text for node in root.iter(f"{SVG}text")}
    assert "a <model>: the next token on the plane through three texts" in said
    assert not list(root.iter(f"{SVG}b"))
    assert all("\n" not in (text or "") for text in said)
    assert not re.search(r"\bid=|href|url\(", drawn)
    drawn.encode("utf-8")


def test_spaces_are_seen() -> None:
    shown = [cell_map._token(text) for text in (" the", " ", "   ", "", "\n", "a b")]
    assert shown == ["·the", "(space)", "(3 spaces)", "(no text)", "↵", "a·b"]


def test_colours_go_to_the_texts_and_the_largest_and_grey_to_the_rest() -> None:
    given = record([f"t{i}" for i in range(200)])
    assert len(given.cells) > 8
    looks = cell_map._looks(given)
    assert list(looks.values()) == list(COLOURS)
    assert {text.id for text in given.texts} <= set(looks)
    drawn = cell_map.cell_map_svg(given)
    assert f"{len(given.cells) - 6} other tokens" in drawn
    # one grey path per other cell, and its swatch
    assert drawn.count(f'fill="{GRID}"') == len(given.cells) - 6 + 1


def test_few_cells_need_no_other() -> None:
    drawn = cell_map.cell_map_svg(record(["a", "b", "c"], outline=False))
    assert "other token" not in drawn
    assert "final norm" not in drawn


def test_polygons_are_drawn_as_they_are() -> None:
    given = record([f"t{i}" for i in range(50)])
    frame = cell_map._Frame(given.rectangle, 0, 0, 480)
    root = ET.fromstring(cell_map.cell_map_svg(given))
    paths = [node for node in root.iter(f"{SVG}path") if node.get("stroke-width") == "0.8"]
    assert len(paths) == len(given.cells)
    for node, cell in zip(paths, given.cells, strict=True):
        numbers = np.array(re.findall(r"-?[\d.]+", node.get("d") or ""), dtype=float).reshape(-1, 2)
        np.testing.assert_allclose(numbers, frame.pixels(cell.corners), atol=0.006)
    assert frame.pixels([given.rectangle[::2]]).tolist() == [[0, 480]]


@given(st.integers(0, 10**6), st.sampled_from([4, 30, 300]))
@settings(max_examples=15, deadline=None)
def test_labels_lie_inside_their_cells_and_apart(seed: int, count: int) -> None:
    given_record = record([f" token{i}" for i in range(count)], seed=seed)
    frame = cell_map._Frame(given_record.rectangle, 0, 0, 480)
    taken: list[cell_map._Box] = []
    for cell in given_record.cells:
        corners = frame.pixels(cell.corners)
        _, box = cell_map._inside(corners, cell.text, taken, frame.pixels([]), 480)
        if box is None:
            continue
        w, h = box.width / 2, box.height / 2
        ends = np.array([[box.x + i * w, box.y + j * h] for i in (-1, 1) for j in (-1, 1)])
        assert cell_map._depth(ends, corners).min() > -1e-6
        taken.append(box)
    for a, b in itertools.combinations(taken, 2):
        assert not a.meets(np.array([a.x]), np.array([a.y]), b)[0]


def test_a_label_keeps_off_the_line_where_it_can() -> None:
    square = np.array([[0, 200], [200, 200], [200, 0], [0, 0.0]])
    line = np.column_stack([np.full(50, 100.0), np.linspace(0, 200, 50)])
    _, free = cell_map._inside(square, "ab", [], np.empty((0, 2)), 200)
    _, moved = cell_map._inside(square, "ab", [], line, 200)
    assert free is not None
    assert free.x == pytest.approx(100)
    assert moved is not None
    assert abs(moved.x - 100) > moved.width / 2


def test_a_sliver_has_no_label() -> None:
    sliver = np.array([[0, 3], [200, 3], [200, 0], [0, 0.0]])
    assert cell_map._inside(sliver, "word", [], np.empty((0, 2)), 200)[1] is None


def test_saved_as_svg_and_png(tmp_path) -> None:
    given = record([f"t{i}" for i in range(9)])
    drawn, picture = cell_map.save_cell_map(given, tmp_path / "new")
    assert drawn.read_text(encoding="utf-8") == cell_map.cell_map_svg(given)
    data = picture.read_bytes()
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    size = [int.from_bytes(data[i : i + 4], "big") for i in (16, 20)]
    assert size[0] == 2 * int(ET.fromstring(cell_map.cell_map_svg(given)).get("width", ""))
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="--out"):
        cell_map.save_cell_map(given, tmp_path / "file")


def test_words_for_those_who_do_not_see_it() -> None:
    said = cell_map.describe_map(record(["a", "b", "c"]))
    assert "tokens win somewhere on the plane" in said
    assert said.count("lies in the cell of") == 3


def test_report_layer_brings_no_model() -> None:
    code = (
        "import sys, lmreach.report.cells.map; print('torch' in sys.modules, 'transformers' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120
    )
    assert done.stdout.split() == ["False", "False"]


def test_for_a_phone_everything_stands_below_the_map() -> None:
    given = record([f"t{i}" for i in range(9)])
    wide, narrow = (ET.fromstring(cell_map.cell_map_svg(given, narrow=one)) for one in (False, True))
    assert float(narrow.get("width", "")) < 390
    assert {text.text for text in wide.iter(SVG + "text")} & {text.text for text in narrow.iter(SVG + "text")}
    for text in narrow.iter(SVG + "text"):
        assert 0 <= float(text.get("x", "")) <= float(narrow.get("width", ""))
        assert 0 <= float(text.get("y", "")) <= float(narrow.get("height", ""))
