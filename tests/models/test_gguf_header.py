"""The directory of a GGUF file against the reader of the gguf package, and files that are damaged."""

import numpy as np
import pytest
from gguf import GGUFEndian, GGUFReader, GGUFWriter
from hypothesis import given
from hypothesis import strategies as st
from transformers import AutoConfig

from lmreach.errors import ModelError
from lmreach.models.gguf_header import read_header, write_outline
from lmreach.models.stored import GgufFile
from lmreach.models.tiny import tiny
from tests.models.gguf_writing import write_gguf


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("gguf") / "tiny.gguf"
    write_gguf(path, tiny("qwen2", rms_norm_eps=1e-6))
    return path


def test_every_tensor_is_where_the_package_finds_it(file):
    header, reader = read_header(file), GGUFReader(file)
    assert list(header.tensors) == [tensor.name for tensor in reader.tensors]
    for tensor in reader.tensors:
        ours = header.tensors[tensor.name]
        assert ours.kind == tensor.tensor_type
        assert ours.shape == tuple(reversed(tensor.shape.tolist()))
        assert (ours.begin, ours.end - ours.begin) == (tensor.data_offset, tensor.n_bytes)


def test_metadata_are_those_the_package_finds(file):
    header, reader = read_header(file), GGUFReader(file)
    assert list(header.entries) == [key for key in reader.fields if not key.startswith("GGUF.")]
    for key in ("general.architecture", "general.name", "tokenizer.ggml.model"):
        assert header.text(key) == reader.fields[key].contents()
    kinds, tokens = "tokenizer.ggml.token_type", "tokenizer.ggml.tokens"
    assert header.numbers(kinds).tolist() == reader.fields[kinds].contents()
    assert [text.decode() for text in header.texts(tokens)] == reader.fields[tokens].contents()
    assert header.length(tokens) == len(reader.fields[tokens].contents())
    assert header.text(tokens) is header.length("none") is header.text("none") is None
    assert header.texts(kinds) == []
    assert header.numbers(tokens).size == header.numbers("none").size == 0


def test_the_outline_has_the_same_settings(file, tmp_path, monkeypatch):
    monkeypatch.setattr("lmreach.models.gguf_header._LONGEST", 8)
    write_outline(read_header(file), tmp_path / "outline.gguf")
    assert "tokenizer.ggml.tokens" not in read_outline(tmp_path / "outline.gguf")
    whole, short = (
        {**AutoConfig.from_pretrained(path.parent, gguf_file=path.name).to_dict(), "_name_or_path": ""}
        for path in (file, tmp_path / "outline.gguf")
    )
    assert short == whole


def read_outline(path):
    return GGUFReader(path).fields


def test_a_missing_vocabulary_size_is_that_of_the_tokens(tmp_path, monkeypatch):
    monkeypatch.setattr("lmreach.models.gguf_header._LONGEST", 8)
    write_small(tmp_path / "a.gguf", ["a", "b", *(str(k) for k in range(20))])
    write_outline(read_header(tmp_path / "a.gguf"), tmp_path / "b.gguf")
    assert read_outline(tmp_path / "b.gguf")["llama.vocab_size"].contents() == 22


def write_small(path, texts, *, endian=GGUFEndian.LITTLE, values=((1.5, -2.0, 3.0),)):
    writer = GGUFWriter(path, "llama", endianess=endian)
    writer.add_token_list(texts)
    writer.add_token_types([1] * len(texts))
    writer.add_tensor("token_embd.weight", np.array(values, dtype=np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def test_of_two_ids_with_one_text_the_later_counts(tmp_path):
    write_small(tmp_path / "a.gguf", ["a", "b", "a", "c", "beyond the rows"])
    usable, special = GgufFile(read_header(tmp_path / "a.gguf")).usable_and_special(4)
    assert (usable.tolist(), special.tolist()) == ([1, 2, 3], [])


def test_the_other_byte_order_is_read(tmp_path):
    write_small(tmp_path / "a.gguf", ["a", "bc"], endian=GGUFEndian.BIG)
    header = read_header(tmp_path / "a.gguf")
    assert (header.texts("tokenizer.ggml.tokens"), header.order) == ([b"a", b"bc"], ">")
    assert header.tensors["token_embd.weight"].shape == (1, 3)


@given(data=st.data())
def test_a_damaged_file_is_read_or_refused_in_one_line(file, tmp_path_factory, data):
    raw = bytearray(file.read_bytes())
    end = read_header(file).tensors["token_embd.weight"].begin
    place = data.draw(st.integers(0, end - 1))
    raw[place] = data.draw(st.integers(0, 255))
    path = tmp_path_factory.getbasetemp() / "damaged.gguf"
    path.write_bytes(raw[: data.draw(st.sampled_from([len(raw), len(raw) - 1, place]))] or b"G")
    said = ""
    try:
        read_header(path)
    except ModelError as error:
        said = str(error)
    assert not said or "expected a whole GGUF file damaged.gguf" in said
    assert "\n" not in said
