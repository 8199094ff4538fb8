"""Tokenizers whose alphabet is not that of English text."""

from tokenizers import Regex, Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

AMINO_ACIDS = "ACDEFGHIKLMNPQRSTVWY"


def amino_acids() -> PreTrainedTokenizerFast:
    """BPE of single letters: drops whatever else it is given."""
    vocabulary = {letter: i for i, letter in enumerate(["<s>", *AMINO_ACIDS])}
    return PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer(models.BPE(vocab=vocabulary, merges=[])), bos_token="<s>"
    )


def digits(*, unknown: bool = False) -> PreTrainedTokenizerFast:
    """Word level: raises on other words, or writes its unknown token."""
    names = ["<s>", *(["<unk>"] if unknown else []), *"0123456789"]
    vocabulary = {name: i for i, name in enumerate(names)}
    inner = Tokenizer(models.WordLevel(vocab=vocabulary, unk_token="<unk>" if unknown else None))
    inner.pre_tokenizer = pre_tokenizers.Split(Regex(r"\s*"), "removed")
    return PreTrainedTokenizerFast(
        tokenizer_object=inner, bos_token="<s>", unk_token="<unk>" if unknown else None
    )
