"""Certificates by themselves: decoded again, exported, read by other software."""

from pathlib import Path

import numpy as np
import pytest
import torch
from peft import PeftModel
from safetensors.numpy import load_file

from lmreach.config import CramPlan, LoadConfig, StudyConfig
from lmreach.engine.store import Store
from lmreach.errors import InputError, OutputError
from lmreach.runs.certificates.certificate import (
    decode_certificate,
    export_peft,
    export_safetensors,
    load_for,
    open_certificate,
)
from lmreach.runs.certificates.stored import read_certificate
from lmreach.runs.certificates.verify import quantised_summary, verify_run
from lmreach.runs.study.run import run_study


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    config = StudyConfig(
        model="builtin:random",
        m=(2,),
        targets=("random",),
        budget_s=None,
        support_positions=0,
        decoder_cells=False,
        cram=CramPlan(strings=3, max_steps=60, n_max=12),
    )
    return run_study(config, tmp_path_factory.mktemp("runs") / "run").folder


@pytest.fixture(scope="module")
def longest(run: Path) -> Path:
    with Store(run) as store:
        best = max(store.each(), key=lambda trial: trial["reach"])
        return store.certificate_path(best["key"])


def test_it_is_decoded_by_the_model_of_its_run(longest: Path) -> None:
    certificate = open_certificate(longest)
    assert certificate.model == "builtin:random"
    decoded = decode_certificate(load_for(certificate), certificate)
    assert decoded.ids.tolist() == certificate.ids.tolist()
    assert decoded.smallest_gap == pytest.approx(float(certificate.claim["smallest_gap"]), abs=1e-4)


def test_outside_of_its_run_the_model_must_be_named_and_be_the_right_one(
    longest: Path, tmp_path: Path
) -> None:
    moved = tmp_path / "certificates" / "one.safetensors"
    moved.parent.mkdir()
    moved.write_bytes(longest.read_bytes())
    with pytest.raises(InputError, match="name the model after it"):
        open_certificate(moved)
    assert load_for(open_certificate(moved, "builtin:random"))
    with pytest.raises(OutputError, match="weights"):
        load_for(open_certificate(moved, "builtin:verse"))
    with pytest.raises(InputError, match="certificate file"):
        open_certificate(tmp_path / "none")


def test_peft_emits_the_same_ids_from_the_exported_adapter(longest: Path, tmp_path: Path) -> None:
    """The oracle is PEFT's own forward pass with the adapter it loaded."""
    certificate = open_certificate(longest)
    loaded = load_for(certificate)
    export_peft(certificate, loaded, tmp_path / "adapter")
    ids = torch.from_numpy(certificate.ids)[None]
    adapted = PeftModel.from_pretrained(loaded.model, str(tmp_path / "adapter"))
    logits = adapted(input_ids=ids).logits[0]
    m, n = len(certificate.vectors), ids.shape[1]
    assert logits[m - 1 : m - 1 + n].argmax(-1).tolist() == ids[0].tolist()


def test_plain_export_holds_vectors_ids_and_claim(longest: Path, tmp_path: Path) -> None:
    certificate = open_certificate(longest)
    path = export_safetensors(certificate, tmp_path / "plain")
    tensors = load_file(path)
    np.testing.assert_array_equal(tensors["vectors"], certificate.vectors)
    assert open_certificate(path, "builtin:random").claim == certificate.claim
    with pytest.raises(OutputError, match="empty folder"):
        export_safetensors(certificate, tmp_path / "plain")


def test_a_start_token_before_the_vectors_is_no_adapter(
    longest: Path, tmp_path: Path, random_model: object
) -> None:
    vectors, ids, claim = read_certificate(longest)
    certificate = type(open_certificate(longest))(
        vectors, ids, {**claim, "bos": "before"}, "builtin:random", LoadConfig(), {"vectors": vectors}
    )
    with pytest.raises(InputError, match="safetensors"):
        export_peft(certificate, random_model, tmp_path / "adapter")


def test_rounding_the_vectors_shows_how_many_bits_they_need(run: Path) -> None:
    verdicts = verify_run(run, formats=("float16", "int8", "int2"))
    rows = {row.format: row for row in quantised_summary(verdicts)}
    assert rows["float16"].hold_whole == rows["float16"].claims == len(verdicts)
    assert rows["int2"].tokens_kept < rows["float16"].tokens_kept == rows["int8"].tokens_claimed
    assert quantised_summary(verify_run(run)) == ()


def test_what_holds_in_one_dtype_only_is_fragile(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The float32 pass is made to disagree with the run's own."""
    from lmreach.runs.certificates import verify

    real = verify._Decoding.alone
    monkeypatch.setattr(
        verify._Decoding,
        "alone",
        lambda self, claim, name=None: real(self, claim, name) - (self.model.facts.dtype == "float32"),
    )
    with Store(run) as store:
        kept = store.meta("run")
        half = verify.load("builtin:random", LoadConfig(dtype="bfloat16"))
        store.put_meta("run", {**kept, "fingerprint": half.facts.fingerprint})
    try:
        verdicts = verify_run(run, load_config=LoadConfig(dtype="bfloat16"))
    finally:
        with Store(run) as store:
            store.put_meta("run", kept)
    assert {one.status for one in verdicts} <= {"fragile", "failed"}
    assert all(one.why for one in verdicts)
    assert any(one.status == "fragile" and "float32" in one.why for one in verdicts)


def test_what_a_batch_rounds_away_is_fragile(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One of the eight rows is made to differ in its last token."""
    from lmreach.runs.certificates import verify

    real = verify.greedy_batch

    def one_off(model, vectors, n, *, frame):
        ids = real(model, vectors, n, frame=frame)
        ids[3, -1] += 1
        return ids

    monkeypatch.setattr(verify, "greedy_batch", one_off)
    verdicts = verify_run(run)
    assert {one.status for one in verdicts} == {"fragile"}
    assert all(one.emitted == one.claimed == one.emitted_in_batch + 1 for one in verdicts)
    assert all("batch of 8" in one.why for one in verdicts)
