"""Parts of a plan that were run apart come together: every trial once, with its certificate, or none."""

from pathlib import Path

import pytest

from lmreach.config import CensusConfig, CramPlan, ExecutorConfig, StudyConfig
from lmreach.engine.merge import merge
from lmreach.engine.run import open_run
from lmreach.errors import InputError, OutputError
from lmreach.runs.census.run import run_census
from lmreach.runs.study.run import resume_study, run_study
from tests.runs.study.test_executors import untimed_searches, whole

__all__ = ["untimed_searches"]

CONFIG = StudyConfig(
    model="builtin:random",
    m=(1, 2),
    targets=("random",),
    budget_s=None,
    relative_width=None,
    support_positions=0,
    decoder_cells=False,
    cram=CramPlan(strings=34, max_steps=4, n_max=3, search_dtype="float32", start_scale=1.0),
)


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    place = tmp_path_factory.mktemp("parts")
    shards = [ExecutorConfig(shard=f"{number}/3") for number in (1, 2, 3)]
    return [run_study(CONFIG, place / one.shard[0], executor=one).folder for one in shards if one.shard]


def test_parts_hold_every_trial_once_and_make_the_whole(parts: list[Path], tmp_path: Path) -> None:
    keys = []
    for part in parts:
        with open_run(part).ledger() as store:
            keys += sorted(store.keys())
        end = open_run(part).end()
        assert end is not None
        assert not end.open, "what other parts have is not left to this one"
    assert len(keys) == len(set(keys)) == 2 * 34
    merge([*parts, parts[0]], tmp_path / "joined")
    assert not resume_study(tmp_path / "joined").interrupted
    alone = run_study(CONFIG, tmp_path / "alone").folder
    assert whole(tmp_path / "joined") == whole(alone)


def test_what_is_no_part_is_refused(parts: list[Path], tmp_path: Path) -> None:
    with pytest.raises(InputError, match="two runs or more to join; got 1"):
        merge(parts[:1], tmp_path / "out")
    other = CONFIG.model_copy(update={"cram": CONFIG.cram.model_copy(update={"seed": 1, "strings": 1})})
    stranger = run_study(other, tmp_path / "other").folder
    with pytest.raises(OutputError, match="other settings in"):
        merge([parts[0], stranger], tmp_path / "out")
    certificate = next(path for part in parts for path in (part / "certificates").iterdir())
    content = certificate.read_bytes()
    try:
        certificate.write_bytes(content[:-1])
        with pytest.raises(OutputError, match="as it was written; got another, or none"):
            merge(parts, tmp_path / "out")
    finally:
        certificate.write_bytes(content)


def test_a_plan_that_time_decides_has_no_parts(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="a plan that is known beforehand for --shard"):
        run_study(
            CONFIG.model_copy(update={"budget_s": 9.0}),
            tmp_path / "run",
            executor=ExecutorConfig(shard="1/2"),
        )
    with pytest.raises(InputError, match=r"write e\.g\. 1/8"):
        ExecutorConfig(shard="3/2")


def test_a_census_in_parts(tmp_path: Path) -> None:
    config = CensusConfig(model="builtin:random", prompt_tokens=(2,), prompts=1500, n=2)
    for number in (1, 2):
        run_census(config, tmp_path / str(number), executor=ExecutorConfig(shard=f"{number}/2"))
    joined = merge([tmp_path / "1", tmp_path / "2"], tmp_path / "joined")
    end = run_census(config, joined.folder)
    whole_ = run_census(config, tmp_path / "alone")
    assert not end.left
    counts = [open_run(one.folder).results().census.tokens[0].lengths for one in (end, whole_)]
    assert counts[0] == counts[1]
