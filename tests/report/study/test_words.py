"""The sentences of the page."""

import re

import pytest

from lmreach.report.study import words

from .. import sample


def headline(results):
    return " ".join(words.headline(results)).replace("\u00a0", " ")


def test_headline_of_an_ordinary_study():
    results = sample.study()
    first, further, steps, limit, others, outside = (
        sentence.replace("\u00a0", " ") for sentence in words.headline(results)
    )
    assert first == (
        "From one prompt vector, builtin:verse could be made to emit 2.4 random tokens (n50; 95 % interval "
        "2.0 to 2.7) and 5.4 tokens of its own text (4.6 to 6.2)."
    )
    assert re.fullmatch(
        r"Each further vector adds [\d.]+ random tokens \([\d.]+ to [\d.]+\) and [\d.]+ tokens of its own "
        r"text \([\d.]+ to [\d.]+\), over m = 1 to 16\.",
        further,
    )
    assert steps == (
        "Lengths in random tokens and tokens of its own text are after 386 to 6,172 steps a string."
    )
    assert (
        "premise “hidden” (norm ellipsoid, packing: proved) is 232 tokens per vector: 99 times (90 to 110)"
        in limit
    )
    assert (
        "one vector reaches at most a share of 10⁻⁶⁹⁹ (e⁻¹⁶⁰⁹) of all sequences of twice that length" in limit
    )
    assert others == "Under other premises the tightest limits are 219 under “input” and 819 under “format”."
    assert outside.startswith(
        "30 of the 320 sets of vectors that were found lie inside the box of real inputs"
    )


@pytest.mark.parametrize(
    ("verdict", "said"),
    [
        ("above_limit", "at least 128 random tokens (this run’s length limit"),
        ("below_one", "fewer than half of the strings gave even their first token"),
        ("no_data", "there is no n50 for one prompt vector: 0 of 32 strings were finished"),
    ],
)
def test_verdicts_are_said_and_no_number_is_made_up(verdict, said):
    text = headline(sample.without_answers(verdict))
    assert said in text
    assert "is not known: fewer than two values of m have an n50." in text
    assert " times (" not in text, "no ratio to a limit without a measured slope"


@pytest.mark.parametrize(("growing", "said"), [(16, False), (24, False), (25, True), (32, True)])
def test_lengths_that_the_number_of_steps_set_are_said_to_be(growing, said):
    count = len(sample.study().accessibility)
    growth = {f"accessibility.{i}.still_growing": growing for i in range(count)}
    results, total = sample.changed(sample.study(), growth), growing * count
    assert (f"{total} of {32 * count} strings still grew in the last tenth" in headline(results)) is said


def test_nothing_measured():
    assert words.headline(sample.empty()) == [
        "Nothing was measured in this run, so it does not say what can be reached.",
        "How much a further vector adds was not estimated.",
        "No limit was computed.",
    ]


def test_a_measurement_above_its_limit_is_said_plainly():
    below = {"value": 0.8, "low": 0.7, "high": 0.9}
    change = {f"slopes.{i}.ratios.{j}.ratio": below for i in range(2) for j in range(6)}
    results = sample.changed(sample.study(), change)
    assert "the measurement lies above this limit, so its premise does not hold" in headline(results)


def test_a_convention_is_called_one():
    results = sample.study()
    first = results.limits[0].model_copy(update={"tightest_of_premise": True})
    results = results.model_copy(update={"limits": (first,)})
    assert "If that premise and the convention hold" in headline(results)


def test_tokens_are_never_called_compression():
    page_words = [
        words.PREMISE_NOTE,
        words.BALL_NOTE,
        headline(sample.study()),
        *map(" ".join, words.GLOSSARY),
    ]
    assert not any("compress" in text.lower() or "rigorous" in text.lower() for text in page_words)


def test_vocabulary_says_which_count_entered():
    results = sample.study()
    assert words.vocabulary(results) == "1,024 rows, 1,000 usable; V = 1,000 (usable ids) entered C"
    padded = sample.changed(results, {"model.usable": 900, "model.rows": 1000})
    assert words.vocabulary(padded).endswith("V = 1,000 (rows) entered C")
    padded = sample.changed(padded, {"model.rows": 999})
    assert words.vocabulary(padded).endswith("which is neither of the two")
    assert "no limit was computed" in words.vocabulary(sample.empty())
