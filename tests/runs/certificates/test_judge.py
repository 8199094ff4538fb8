"""Vectors of somebody else against the model."""

from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.numpy import save_file
from safetensors.torch import save_file as save_tensors

from lmreach.config import CramPlan, StudyConfig
from lmreach.errors import InputError, OutputError
from lmreach.models.decode import greedy
from lmreach.runs.certificates.judge import judge, read_target, read_vectors
from lmreach.runs.study.run import run_study


@pytest.fixture(scope="module")
def vectors(random_model) -> np.ndarray:
    return random_model.input_vectors(torch.tensor([3, 77])).numpy()


@pytest.fixture(scope="module")
def emitted(random_model, vectors: np.ndarray) -> np.ndarray:
    return greedy(random_model, torch.from_numpy(vectors), 9).ids


def test_what_they_emit_is_reached_whole(random_model, vectors, emitted) -> None:
    found = judge(random_model, vectors, emitted)
    assert (found.m, found.n, found.reach) == (2, 9, 9)
    assert found.wanted_next is None
    assert found.bits_ids == pytest.approx(81.0)
    assert found.bits_vectors == 2 * 64 * 32
    assert found.bits_per_coordinate == pytest.approx((found.bits_without - found.bits_with) / 128)
    formats = [one for one in found.limits if one.premise == "format"]
    assert all(0 < one.reached_share < 1 for one in formats)


def test_the_first_wrong_token_is_shown(random_model, vectors, emitted) -> None:
    target = emitted.copy()
    target[4] = (target[4] + 1) % 512
    found = judge(random_model, vectors, target)
    assert found.reach == 4
    assert found.wanted_next == random_model.text(target[4:5])
    assert found.emitted_next == random_model.text(emitted[4:5])


def test_a_run_of_the_same_model_is_compared_with(random_model, vectors, emitted, tmp_path: Path) -> None:
    config = StudyConfig(
        model="builtin:random",
        m=(1, 2),
        targets=("random",),
        budget_s=None,
        support_positions=0,
        decoder_cells=False,
        cram=CramPlan(strings=3, max_steps=30, n_max=6),
    )
    run = run_study(config, tmp_path / "run").folder
    (entry,) = judge(random_model, vectors, emitted, run=run).curve
    assert (entry.m, entry.strings) == (2, 3)
    assert entry.share_at_least_as_far == 0.0
    other = (run / "results.json").read_text(encoding="utf-8")
    (run / "results.json").write_text(other.replace(random_model.facts.fingerprint, "0" * 16))
    with pytest.raises(OutputError, match="weights"):
        judge(random_model, vectors, emitted, run=run)


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_files_of_three_kinds_are_read(vectors: np.ndarray, tmp_path: Path, dtype: str) -> None:
    array = vectors.astype(dtype)
    np.save(tmp_path / "a.npy", array)
    save_file({"anything": array, "scale": np.ones(3, dtype=dtype)}, tmp_path / "b.safetensors")
    (tmp_path / "peft").mkdir()
    save_file({"prompt_embeddings": array}, tmp_path / "peft" / "adapter_model.safetensors")
    for name in ("a.npy", "b.safetensors", "peft"):
        read, bits = read_vectors(tmp_path / name)
        np.testing.assert_array_equal(read, array.astype(np.float32))
        assert bits == 8 * array.itemsize


def test_bad_files_are_refused(random_model, vectors: np.ndarray, tmp_path: Path) -> None:
    np.save(tmp_path / "one.npy", vectors[0])
    np.save(tmp_path / "whole.npy", np.ones((2, 64), dtype=np.int64))
    np.save(tmp_path / "nan.npy", np.full((2, 64), np.nan, dtype=np.float32))
    save_file({"a": vectors, "b": vectors}, tmp_path / "two.safetensors")
    (tmp_path / "text.safetensors").write_text("no tensors")
    for name, words in [
        ("none.npy", "which is none"),
        ("one.npy", r"\(m, d\)"),
        ("whole.npy", "floating-point"),
        ("nan.npy", "finite"),
        ("two.safetensors", "2 tensors"),
        ("text.safetensors", "convert"),
    ]:
        with pytest.raises(InputError, match=words):
            read_vectors(tmp_path / name)
    with pytest.raises(InputError, match="width 64"):
        judge(random_model, vectors[:, :32], np.array([1, 2]))


def test_bfloat16_and_float8_are_read(vectors: np.ndarray, tmp_path: Path) -> None:
    for dtype, bits in ((torch.bfloat16, 16), (torch.float8_e4m3fn, 8), (torch.float8_e5m2, 8)):
        narrow = torch.from_numpy(vectors).to(dtype)
        (tmp_path / "peft").mkdir(exist_ok=True)
        save_tensors({"prompt_embeddings": narrow}, tmp_path / "peft" / "adapter_model.safetensors")
        save_tensors({"v": narrow}, tmp_path / "v.safetensors")
        for name in ("peft", "v.safetensors"):
            read, stored = read_vectors(tmp_path / name)
            np.testing.assert_array_equal(read, narrow.float().numpy())
            assert (read.dtype, stored) == (np.float32, bits)


def test_arrays_that_are_none_are_refused_in_one_line(vectors: np.ndarray, tmp_path: Path) -> None:
    (tmp_path / "empty.npy").write_bytes(b"")
    np.save(tmp_path / "whole.npy", vectors)
    cut = (tmp_path / "whole.npy").read_bytes()
    (tmp_path / "cut.npy").write_bytes(cut[:-20])
    (tmp_path / "head.npy").write_bytes(cut[:20])
    np.savez(tmp_path / "several.npz", a=vectors, b=vectors)
    (tmp_path / "several.npz").rename(tmp_path / "several.npy")
    np.save(tmp_path / "objects.npy", np.array([[{}]]), allow_pickle=True)
    np.save(tmp_path / "huge.npy", np.full((2, 64), 1e300))
    np.save(tmp_path / "none.npy", np.zeros((0, 64), dtype=np.float32))
    np.save(tmp_path / "text.npy", np.array([["a"]]))
    np.save(tmp_path / "complex.npy", vectors.astype(np.complex64))
    for name, said in [
        ("empty", "vectors as .npy"),
        ("cut", "vectors as .npy"),
        ("head", "vectors as .npy"),
        ("several", "several arrays (a, b)"),
        ("objects", "vectors as .npy"),
        ("huge", "float32 holds"),
        ("none", "(0, 64)"),
        ("text", "vectors as .npy"),
        ("complex", "complex64"),
    ]:
        with pytest.raises(InputError) as raised:
            read_vectors(tmp_path / f"{name}.npy")
        assert said in str(raised.value), name
        assert "\n" not in str(raised.value)


def test_a_target_longer_than_the_context_is_cut(random_model, vectors: np.ndarray) -> None:
    found = judge(random_model, vectors, np.arange(600) % 512)
    assert (found.n, found.cut_from) == (510, 600)
    assert judge(random_model, vectors, np.arange(5)).cut_from is None


def test_targets_are_whole_files(random_model, tmp_path: Path) -> None:
    path = tmp_path / "a.ids"
    path.write_text("5, 6 7\n1 2\n")
    assert read_target(random_model, f"ids:{path}").tolist() == [5, 6, 7]
    with pytest.raises(InputError, match="text:FILE or ids:FILE"):
        read_target(random_model, "self")
    path.write_text("600")
    with pytest.raises(InputError, match="id 600"):
        read_target(random_model, f"ids:{path}")
