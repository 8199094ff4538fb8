"""Examples that ``--help`` shows and the page of the command line repeats; a test reads every one.

They follow from one another, from the top: the runs that are named are those of the lines before.
"""

__all__ = ["EXAMPLES", "epilogue"]

EXAMPLES: dict[str, tuple[str, ...]] = {
    "study": (
        "lmreach study builtin:verse --budget 2m --out my-study",
        "lmreach study builtin:verse -m 1 2 4 --targets random text:my.txt --budget 30m",
        "lmreach study builtin:verse builtin:random --budget 2m --out my-studies",
    ),
    "bounds": (
        "lmreach bounds builtin:verse -m 4 -n 500",
        "lmreach bounds --width 768 --vocab 50304 --dtype bfloat16 --need 2000",
    ),
    "support": ("lmreach support builtin:verse --out my-support.json",),
    "cells": (
        "lmreach cells builtin:verse --unreachable",
        'lmreach cells builtin:verse --map "O my" "And then" "The sun" --out my-map',
    ),
    "paper": ("lmreach paper --dtype bfloat16",),
    "cram": (
        "lmreach cram builtin:verse -m 1 2 --strings 6 --max-steps 60 --out my-cram",
        "lmreach cram builtin:verse -m 4 --targets text:my.txt --strings 2 --budget 10m",
    ),
    "census": (
        "lmreach census builtin:verse --prompt-tokens 1 --budget 5m --out my-census",
        "lmreach census tiny:llama,width=3,vocab=8,layers=1,bits=8,seed=0 --grid 4 -m 1 -n 6",
        'lmreach census builtin:verse --is-reachable "shall I compare" --budget 1m',
    ),
    "copy": (
        "lmreach copy builtin:verse -n 1 2 4 --strings 8 --no-layouts --out my-copy",
        "lmreach copy --kind rope --budget 20m",
    ),
    "compare": ("lmreach compare my-study my-cram --out my-comparison",),
    "export-table": ("lmreach export-table my-study my-cram --format latex",),
    "verify": ("lmreach verify my-cram",),
    "decode": ("lmreach decode my-cram/certificates/NAME.safetensors",),
    "judge": ("lmreach judge my.npy builtin:verse --target text:my.txt --run my-study",),
    "export": (
        "lmreach export my-cram --csv my-trials.csv",
        "lmreach export my-cram/certificates/NAME.safetensors --out my-adapter",
    ),
    "plan": ("lmreach plan builtin:verse --budget 10m",),
    "resume": ("lmreach resume my-study --budget 10m",),
    "merge": (
        "lmreach cram builtin:verse --strings 64 --max-steps 60 --shard 1/2 --out my-part-1",
        "lmreach cram builtin:verse --strings 64 --max-steps 60 --shard 2/2 --out my-part-2",
        "lmreach merge my-part-1 my-part-2 --out my-whole",
    ),
    "status": ("lmreach status my-study --json",),
    "report": ("lmreach report my-study --figures --open",),
    "cache": ("lmreach cache --clear",),
}


def epilogue(command: str) -> str:
    """Return what stands below the help of a command."""
    lines = "\n".join(f"  {example}" for example in EXAMPLES[command])
    return f"Examples:\n{lines}"
