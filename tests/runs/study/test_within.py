"""A study held to a set: certificates in the format itself, membership verified, the same set's limit."""

import math
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file, save_file
from safetensors.torch import load_file as load_torch

from lmreach.config import CramPlan, StudyConfig
from lmreach.engine.store import Store, read_tensors
from lmreach.errors import InputError, OutputError
from lmreach.models.loaded import LoadedModel
from lmreach.results import StudyResults, open_results
from lmreach.runs.certificates.certificate import export_peft, export_safetensors, load_for, open_certificate
from lmreach.runs.certificates.judge import judge, read_vectors
from lmreach.runs.certificates.stored import read_certificate
from lmreach.runs.certificates.verify import verify_run
from lmreach.runs.study.run import run_study


def study(within: str, folder: Path, **more: object) -> Path:
    config = StudyConfig(
        model="builtin:random",
        m=(1, 2),
        targets=("self",),
        budget_s=None,
        support_positions=0,
        decoder_cells=False,
        cram=CramPlan(
            within=within,
            strings=3,
            max_steps=40,
            patience=40,
            n_max=8,
            start_scale=1.0,
            flips=3,
            search_dtype="float32",
            **more,  # type: ignore[arg-type]
        ),
    )
    return run_study(config, folder).folder


@pytest.fixture(scope="module")
def signs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return study("sign", tmp_path_factory.mktemp("runs") / "signs")


def certificates(folder: Path) -> list[Path]:
    return sorted((folder / "certificates").glob("*.safetensors"))


def results_of(folder: Path) -> StudyResults:
    results = open_results(folder)
    assert isinstance(results, StudyResults)
    return results


def test_certificates_hold_one_bit_a_coordinate(signs: Path) -> None:
    paths = certificates(signs)
    assert len(paths) >= 3
    for path in paths:
        tensors, _, claim = read_tensors(path)
        assert set(tensors) == {"codes"}
        assert tensors["codes"].nbytes == 8 * int(claim["m"])  # 64 bits a vector
        vectors, _, _ = read_certificate(path)
        assert set(np.unique(np.abs(vectors))) == {float(claim["scale"])}


def test_every_certificate_is_a_member_and_holds(signs: Path) -> None:
    assert {one.status for one in verify_run(signs)} == {"held"}


def test_the_limit_of_the_very_set_stands_beside_n50(signs: Path) -> None:
    results = results_of(signs)
    (own,) = [limit for limit in results.limits if limit.name == "within sign"]
    assert own.log_packing_nats == pytest.approx(64 * math.log(2))
    assert (own.premise, own.packing, own.tightest_of_premise) == ("format", "exact count", True)
    for entry in results.accessibility:
        assert entry.within == "sign"
        assert entry.bits_vectors == 64 * entry.m
        assert "within sign" in entry.ratio_to_limits
        assert entry.bits_ids is None or entry.bits_ids < entry.bits_vectors
    assert "within sign" in (signs / "report.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("text", ["box", "ball:1", "subspace:8", "float16", "e4m3", "subspace:9+int4:vector"])
def test_other_sets_verify_as_well(text: str, tmp_path: Path) -> None:
    folder = study(text, tmp_path / "run")
    verdicts = verify_run(folder)
    assert verdicts
    assert {one.status for one in verdicts} == {"held"}


def test_vectors_outside_are_refused_by_name_and_coordinate(tmp_path: Path) -> None:
    folder = study("box", tmp_path / "run")
    path = certificates(folder)[0]
    tensors, ids, claim = read_tensors(path)
    tensors["vectors"][0, 3] = 99.0
    save_file({**tensors, "ids": ids}, path, metadata=claim)
    with Store(folder) as store:
        store._db.execute("UPDATE trials SET proof = NULL")
        store._db.commit()
    (wrong,) = [one for one in verify_run(folder) if one.status == "failed"]
    assert "not within box: 99 at vector 0, coordinate 3" in wrong.why


def test_a_certificate_of_another_scale_is_not_the_runs(signs: Path, tmp_path: Path) -> None:
    folder = study("sign", tmp_path / "run")
    path = certificates(folder)[0]
    tensors, ids, claim = read_tensors(path)
    save_file({**tensors, "ids": ids}, path, metadata={**claim, "scale": "3.0"})
    with Store(folder) as store:
        store._db.execute("UPDATE trials SET proof = NULL")
        store._db.commit()
    (wrong,) = [one for one in verify_run(folder) if one.status == "failed"]
    assert "the certificate says scale 3.0, the run" in wrong.why
    save_file({"codes": tensors["codes"][:-1], "ids": ids}, path, metadata=claim)
    with pytest.raises(OutputError, match="bytes"):
        read_certificate(path)


def test_another_premise_is_another_run(signs: Path) -> None:
    with pytest.raises(OutputError):
        study("int2", signs)
    with Store.reading(signs) as store:
        assert store.keys() == {path.stem for path in certificates(signs)} | {
            trial["key"] for trial in store.each() if trial["reach"] == 0
        }


def test_exports_keep_the_format(signs: Path, tmp_path: Path) -> None:
    certificate = open_certificate(certificates(signs)[0])
    path = export_safetensors(certificate, tmp_path / "signs")
    assert set(load_file(path)) == {"vectors", "ids", "codes"}
    halves = study("bfloat16", tmp_path / "run")
    certificate = open_certificate(certificates(halves)[0])
    plain = load_torch(export_safetensors(certificate, tmp_path / "plain"))
    assert plain["vectors"].dtype == torch.bfloat16
    assert np.array_equal(plain["vectors"].float().numpy(), certificate.vectors)
    adapter = load_torch(export_peft(certificate, load_for(certificate), tmp_path / "peft"))
    assert adapter["prompt_embeddings"].dtype == torch.bfloat16
    assert read_vectors(tmp_path / "peft")[1] == 16


def test_own_vectors_are_judged_by_the_limit_of_their_set(signs: Path, random_model: LoadedModel) -> None:
    vectors, ids, _ = read_certificate(certificates(signs)[0])
    judged = judge(random_model, vectors, ids, within="sign")
    assert judged.limits[0].name == "within sign"
    assert judged.limits[0].longest_fully_possible == len(vectors) * 64 // 9
    assert judged.bits_vectors == 64 * len(vectors)
    vectors[0, 5] *= 3
    with pytest.raises(InputError, match="vector 0, coordinate"):
        judge(random_model, vectors, ids, within="sign")
    assert judge(random_model, vectors, ids, within="int2").limits[0].name == "within int2"
    with pytest.raises(InputError, match="width 64"):
        judge(random_model, vectors[:, :5], ids, within="int2")


def test_what_cannot_be_run_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="at most 64 dimensions"):
        study("subspace:65", tmp_path / "one")
    with pytest.raises(InputError, match="--within"):
        study("sign", tmp_path / "two", protocol="published")
    assert not (tmp_path / "one").exists()
    assert not (tmp_path / "two").exists()
