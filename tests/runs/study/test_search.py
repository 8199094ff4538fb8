"""What a run's optimiser is given: chosen once, kept for a resume, and nothing for the published protocol."""

from lmreach.config import CramPlan
from lmreach.experiments.cramming import start_cache
from lmreach.results.study import SearchRecord
from lmreach.runs.study.search import prepare


def test_the_record_gives_the_same_search_again(random_model) -> None:
    first = prepare(random_model, CramPlan(), m=1)
    again = prepare(random_model, CramPlan(), m=1, kept=first.record)
    assert first.start_scale is not None
    assert again.config == first.config == CramPlan()
    assert again.optimiser == first.optimiser
    assert again.optimiser.start_scale == first.start_scale
    assert again.record == first.record
    assert again.model is first.model is random_model


def test_a_record_in_another_format_is_followed(random_model) -> None:
    kept = SearchRecord(dtype="bfloat16", attention="eager", start_scale=10.0)
    found = prepare(random_model, CramPlan(), m=1, kept=kept)
    assert str(found.model.dtype) == "torch.bfloat16"
    assert found.model.model.config._attn_implementation == "eager"
    assert found.optimiser.start_scale == 10.0


def test_a_length_that_was_asked_for_is_not_probed(random_model) -> None:
    found = prepare(random_model, CramPlan(start_scale=3.0), m=1)
    assert found.optimiser.start_scale == found.record.start_scale == 3.0
    assert found.record.probe_of_start is None


def test_no_time_leaves_the_length_of_real_inputs_and_says_so(random_model, monkeypatch, tmp_path) -> None:
    monkeypatch.setattr(start_cache, "folder", lambda: tmp_path)
    found = prepare(random_model, CramPlan(), m=1, seconds=0.0)
    assert "too short" in found.doubt
    assert found.optimiser.start_scale == 1.0
    assert found.record.probe_of_start.mean_reach == {}


def test_the_published_protocol_is_left_as_it_is(random_model) -> None:
    config = CramPlan(protocol="published")
    found = prepare(random_model, config, m=1)
    assert found.model is random_model
    assert found.config == config
