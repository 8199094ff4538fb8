"""Every snippet of the theory page gives what the page says."""

import doctest
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "theory.md"


def test_the_page_tells_the_truth() -> None:
    found = doctest.testfile(str(PAGE), module_relative=False, optionflags=doctest.FAIL_FAST)
    assert found.attempted >= 14
    assert found.failed == 0
