"""The JSON inside the page."""

import json
import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmreach.errors import InputError
from lmreach.report.kit.embed import as_json, script_text, strict

LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.text()
VALUES = st.recursive(
    LEAVES, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=20
)


def read(text):
    def refuse(word):
        raise AssertionError(f"not strict JSON: {word}")

    return json.loads(text, parse_constant=refuse)


@given(VALUES)
def test_script_text_is_strict_json_that_holds_no_markup(value):
    text = str(script_text(value))
    assert not set("<>&") & set(text)
    assert text.isascii()
    assert read(text) == strict(value)


def test_numbers_json_cannot_say():
    assert read(as_json({"a": math.nan, "b": math.inf, "c": [-math.inf], "d": (1,)})) == {
        "a": None,
        "b": "infinity",
        "c": ["-infinity"],
        "d": [1],
    }


@pytest.mark.parametrize("value", [Path("x"), b"x", {1, 2}, object()])
def test_other_values_are_refused_by_name(value):
    with pytest.raises(InputError, match=f"got {type(value).__name__}"):
        strict({"deep": [value]})
