"""The published table: our ratios to the last printed digit, and what differs is said."""

import json

import pytest

from lmreach.errors import InputError
from lmreach.paper import NOTES, PaperRow, comparison, published

RATIOS = {
    "EleutherAI/pythia-160m": 6.528,
    "EleutherAI/pythia-410m": 7.000,
    "EleutherAI/pythia-1b": 5.475,
    "EleutherAI/pythia-1.4b": 6.020,
    "EleutherAI/pythia-2.8b": 9.939,
    "EleutherAI/pythia-6.9b": 11.099,
    "Qwen/Qwen2.5-0.5B": 8.798,
    "Qwen/Qwen2.5-1.5B": 13.453,
    "meta-llama/Llama-3.2-1B": 10.511,
    "google/gemma-3-270m": 9.580,
}
CONES = {
    "EleutherAI/pythia-1.4b": 5.9386,
    "EleutherAI/pythia-2.8b": 9.7871,
    "EleutherAI/pythia-6.9b": 10.9485,
}


def rows() -> dict[str, PaperRow]:
    return {row.id: row for row in comparison()}


def test_ratios_to_the_last_digit() -> None:
    found = rows()
    for name, ratio in RATIOS.items():
        assert f"{found[name].ratio_listed:.3f}" == f"{ratio:.3f}"


def test_the_cone_column() -> None:
    found = rows()
    for name, ratio in CONES.items():
        assert found[name].ratio_cone == pytest.approx(ratio, rel=2e-4)
        assert found[name].ratio_cone == pytest.approx(found[name].published_ratio_cone, rel=2e-4)
        assert found[name].ratio_listed == pytest.approx(found[name].published_ratio_ball, rel=1e-5)
    assert sum(row.cone is not None for row in found.values()) == len(CONES)


def test_no_published_model_is_dropped() -> None:
    assert [row.id for row in comparison()] == [model["id"] for model in published()["models_M26"]]
    lost = rows()["google/gemma-3-1b-pt"]
    assert (lost.ball, lost.ratio_random) == (None, None)
    assert lost.flags == ("d and V are not published, so nothing is computed",)


def test_what_differs_is_said() -> None:
    found = rows()
    (flag,) = found["EleutherAI/pythia-410m"].flags
    assert flag == "listed slope 112.4 differs from slope in the figure 111.14 (+1.1%)"
    assert found["google/gemma-3-270m"].flags == ()
    assert any("no upper bound" in note for note in NOTES)


def test_rows_are_plain() -> None:
    text = json.dumps([row.as_dict() for row in comparison()], allow_nan=False)
    assert "NaN" not in text


def test_a_coarser_format_lowers_every_limit() -> None:
    for fine, coarse in zip(comparison("float16"), comparison("bfloat16"), strict=True):
        if fine.ball is not None and coarse.ball is not None:
            assert coarse.ball < fine.ball


def test_an_unknown_format_is_refused() -> None:
    with pytest.raises(InputError, match="did you mean float16"):
        comparison("flaot16")


def test_published_values_are_a_fresh_copy() -> None:
    published()["models_M26"].clear()
    assert published()["models_M26"]
