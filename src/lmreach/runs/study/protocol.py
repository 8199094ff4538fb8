"""Which settings a cramming protocol has no use for."""

from lmreach.config import CramPlan
from lmreach.errors import InputError, problem

__all__ = ["check_protocol"]


def check_protocol(asked: CramPlan) -> None:
    """Refuse settings that the chosen protocol has no use for.

    Raises
    ------
    InputError
        Lengths under ``frontier``; under ``published`` a length below 2, restarts, a start token, a text
        around the vectors, or a learning rate that decays.
    """
    if asked.protocol == "frontier":
        _check_frontier(asked)
    elif asked.protocol == "published":
        _check_published(asked)


def _check_frontier(asked: CramPlan) -> None:
    if asked.length:
        got = f"--length {asked.length[0]} with frontier"
        remedy = "add --protocol fixed, or use --n-max"
        raise InputError(problem("lengths only where they are tried one by one", got, remedy))


def _check_published(asked: CramPlan) -> None:
    odd = [
        name
        for name, changed in (
            ("--bos", asked.bos != "none"),
            ("--prefix", bool(asked.prefix)),
            ("--suffix", bool(asked.suffix)),
            ("--within", bool(asked.within)),
            ("--restarts", asked.restarts != 1),
            ("--lr-end", asked.lr_end != asked.lr),
            ("--length 1", 1 in asked.length),
        )
        if changed
    ]
    if odd:
        wanted = "the published protocol (any vector, nothing around it, one start, steady rate, n from 2)"
        raise InputError(problem(wanted, ", ".join(odd), "leave that out, or use --protocol fixed"))
