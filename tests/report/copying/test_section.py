"""The section of copying: every verdict has its words, a figure and no number that is not in the results."""

import json
import re
from typing import Any

import pytest

from lmreach.report import html
from lmreach.report.copying.section import learning_figure, limit_figure, parts, shares_figure
from lmreach.report.copying.words import hidden_limit, prompt_at, sentences
from lmreach.report.figures import figures
from lmreach.report.kit.drawing import svg

from .. import copy_sample as made
from .. import sample

VERDICTS = ("estimated", "separated", "above_limit", "below_first")
SECTIONS = {
    **{v: made.copying(v) for v in VERDICTS},
    "zero-shot": made.zero_shot(),
    "nothing": made.nothing(),
}


@pytest.mark.parametrize("name", SECTIONS)
def test_every_outcome_makes_a_page(name: str) -> None:
    text = html.page(made.run(SECTIONS[name]))
    assert "nan" not in re.sub(r"<script.*?</script>", "", text, flags=re.DOTALL).lower().split()
    assert '<h2 id="copying">' in text
    assert "None" not in re.sub(r"<script.*?</script>|None differs", "", text, flags=re.DOTALL)
    assert not re.search(r"https?://(?!www\.w3\.org)", text)


def test_a_study_carries_the_section_too() -> None:
    results = sample.study()
    results = results.model_copy(update={"copying": made.zero_shot()})
    text = html.page(results)
    assert 'href="#copying"' in text
    assert '<h2 id="copying">Copying: in-context copying</h2>' in text
    assert 'href="#copying"' not in html.page(sample.study())


@pytest.mark.parametrize(
    ("verdict", "words"),
    [
        (
            "estimated",
            r"Half of the strings of 20\.5 letters are copied whole, end mark included, .* 1\.3 times",
        ),
        ("separated", r"Every string of 20 letters is copied and none of 21; the longest in training had 16"),
        (
            "above_limit",
            r"All strings are copied whole, end mark included, up to the longest tried, 320 letters",
        ),
        ("below_first", r"No string comes out whole, not even of 1 letter\."),
    ],
)
def test_the_fall_in_words(verdict: str, words: str) -> None:
    assert re.search(words, " ".join(sentences(made.copying(verdict))))


def test_words_of_training() -> None:
    section = made.copying()
    assert (
        "until all came out right: 512 of 512 held-out strings right after 1,200 steps"
        in sentences(section)[0]
    )
    section = section.model_copy(update={"training": made.training().model_copy(update={"reached": False})})
    assert "has not reached the mark" in sentences(section)[0]
    tuned = made.training().model_copy(update={"curve": (), "parent": "some-model"})
    section = section.model_copy(update={"training": tuned})
    assert sentences(section)[0].startswith("some-model, fine-tuned,")
    assert "stopped before its first test" in sentences(section)[0]
    assert sentences(made.zero_shot())[0].startswith("Nothing was trained")


def test_unseen_symbols_and_teacher_forcing_are_said() -> None:
    section = made.copying()
    unseen = {"unseen": 10, "tested": 11, "unseen_letters": tuple("qrstuvwxyz")}
    alphabet = section.alphabet.model_copy(update=unseen)
    section = section.model_copy(update={"decoding": "teacher_forced", "alphabet": alphabet})
    told = " ".join(sentences(section))
    assert "10 of 11 symbols unseen in training (q, r, s" in told
    assert "Teacher-forced" in told
    assert "Teacher-forced" in parts(section).tables[0].source


@pytest.mark.parametrize(
    ("share", "low", "words"),
    [
        (0.6, 0.4, "most mistakes look like look-ups of what came before that found another place"),
        (0.4, 0.3, "some mistakes look like look-ups"),
        (0.3, 0.1, "no sign of look-ups"),
    ],
)
def test_mistakes_are_compared_with_chance(share: float, low: float, words: str) -> None:
    changes = {f"copying.mistakes.orders.0.followed.{k}": v for k, v in (("share", share), ("low", low))}
    told = " ".join(sentences(sample.changed(made.run(), changes).copying))
    assert words in told
    assert (
        "12 (20 %) stood right beside the right one in the string; a random wrong symbol does in 8 %" in told
    )


def test_layouts_that_differ_are_named() -> None:
    told = " ".join(sentences(made.copying()))
    assert "differ from 'alone': 'padded with 16' (1 strings come out there alone, 9 only in 'alone')" in told
    assert "The other 1 does not." in told
    # Of two comparisons: above 5 % / 2.
    found = sample.changed(made.run(), {"copying.layouts.1.p_value": 0.03})
    assert "None differs from 'alone'" in " ".join(sentences(found.copying))


def test_the_limit_beside_it() -> None:
    limits = made.run().limits
    per = hidden_limit(limits)
    assert per is not None
    told = sentences(made.copying(), limits)[-1]
    assert "tokens per vector (premise hidden)" in told
    assert "5.5 at m = 1, 11 at m = 2 tokens" in told
    assert prompt_at(made.copying(), 20.5) == pytest.approx(22.5)
    assert prompt_at(made.copying(), 1000) == 322
    assert prompt_at(made.copying(), 0.5) == 3
    assert hidden_limit([]) is None


@pytest.mark.parametrize("name", SECTIONS)
def test_figures_draw(name: str) -> None:
    limits = made.run().limits
    section = SECTIONS[name]
    drawn: dict[str, Any] = {
        "shares": shares_figure(section),
        "limit": limit_figure(section, limits),
        "learning": learning_figure(section),
    }
    assert (drawn["shares"] is None) == (name == "nothing")
    assert (drawn["learning"] is None) == (name == "zero-shot")
    for figure in drawn.values():
        if figure is not None:
            assert svg(figure.wide).count("<path") > 3
            assert json.dumps(figure.narrow.to_dict())
    if drawn["shares"] is not None and section.trained_to:
        assert "trained up to 16" in svg(drawn["shares"].wide)


def test_tables_keep_every_row() -> None:
    found = {table.name: table for table in parts(made.copying()).tables}
    assert [row.cells[0].text for row in found["copy-lengths"].rows] == ["1", "8", "16", "20", "21", "320"]
    assert [row.cells[0].badge for row in found["copy-lengths"].rows] == ["in training"] * 3 + [""] * 3
    assert len(found["copy-layouts"].rows) == 3
    assert len(found["copy-mistakes"].rows) == 2
    assert len(found["copy-cramming"].rows) == 3
    assert parts(made.nothing()).tables == ()


def test_a_copying_run_has_its_own_figures_only() -> None:
    assert [figure.name for figure in figures(made.run())] == ["copy-shares", "copy-limit", "copy-learning"]
