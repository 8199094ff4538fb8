"""Results of copying as a run returns them, made up."""

from lmreach.results import CopyResults, Interval
from lmreach.results.base import Columns, FittedCurve, Share
from lmreach.results.copying import (
    Alphabet,
    Attention,
    Checked,
    Copying,
    CopyLength,
    Crammed,
    Layout,
    LearningPoint,
    Mistakes,
    Order,
    Training,
)

from . import sample


def share(count: int, of: int, low: float, high: float, effective: float | None = None) -> Share:
    return Share(count=count, of=of, share=count / of, low=low, high=high, effective=effective)


def length(n: int, right: int, characters: float) -> CopyLength:
    every = share(right, 64, max(0.0, right / 64 - 0.1), min(1.0, right / 64 + 0.1))
    return CopyLength(
        length=n,
        prompt=n + 2,
        exact=every,
        complete=every,
        characters=share(round(64 * n * characters), 64 * n, 0.0, 1.0, 64.0),
        first_wrong_quartiles=None if right == 64 else (n - 2.0, n - 1.0, n - 1.0),
        seconds=1.5,
    )


def n50(verdict: str = "estimated") -> Interval:
    known = verdict in ("estimated", "separated")
    ends = (20.5, 19.0, 22.0) if known else (None, None, None)
    value, low, high = ends
    return Interval(value=value, low=low, high=high, verdict=verdict, confidence=0.95, words="20.5 tokens")


def fit(verdict: str = "estimated") -> FittedCurve:
    known = verdict in ("estimated", "separated")
    if not known:
        return FittedCurve(shape="logistic")
    return FittedCurve(
        shape="logistic",
        n90=Interval(value=18.0, low=17.0, high=19.0, confidence=0.95),
        n10=Interval(value=23.0, low=22.0, high=25.0, confidence=0.95),
        width=Interval(value=5.0, low=3.0, high=8.0, confidence=0.95),
        lapse=Interval(value=0.0, low=0.0, high=0.1, confidence=0.95),
        bracket=(20.0, 21.0) if verdict == "separated" else None,
    )


def crammed(m: int, value: float | None) -> Crammed:
    return Crammed(
        m=m,
        strings=4,
        limit=64 * m,
        reaches=(4 * m, 5 * m, 6 * m, 7 * m),
        censored=(False,) * 4,
        n50=Interval(
            value=value,
            low=None if value is None else value - 1,
            verdict="estimated" if value is not None else "above_limit",
            confidence=0.95,
            words="about that",
        ),
        curve=Columns(n=(1, 5 * m, 7 * m), share=(1.0, 0.75, 0.0), low=(0.4, 0.2, 0.0), high=(1.0, 1.0, 0.6)),
        steps=800,
        start_scale=10.0,
    )


def layout(name: str, p: float) -> Layout:
    return Layout(
        layout=name,
        lengths=(10, 20, 21),
        prompts=(12, 22, 23),
        right=(share(64, 64, 0.9, 1.0), share(40, 64, 0.5, 0.7), share(20, 64, 0.2, 0.4)),
        n50=n50(),
        only_usual=9,
        only_here=1,
        p_value=p,
    )


def mistakes() -> Mistakes:
    first = Order(
        k=1,
        followed=share(30, 60, 0.4, 0.6),
        followed_by_chance=0.2,
        ambiguous=share(50, 64, 0.6, 0.9),
        ambiguous_usually=0.5,
        near=share(12, 60, 0.1, 0.3),
        near_by_chance=0.08,
    )
    nothing = Order(
        k=2,
        followed=None,
        followed_by_chance=None,
        ambiguous=None,
        ambiguous_usually=None,
        near=None,
        near_by_chance=None,
    )
    return Mistakes(
        strings=128,
        kinds={"symbol": 120, "ended early": 8},
        place_quartiles=(18.0, 20.0, 20.0),
        within_training_length=3,
        orders=(first, nothing),
    )


def training() -> Training:
    return Training(
        kind="rope",
        parent=None,
        task="copy",
        n=3,
        shortest=1,
        longest=16,
        steps=1200,
        seconds=300.0,
        reached=True,
        mark=0.99,
        curve=tuple(
            LearningPoint(step=s, loss=3.0 - s / 500, exact=s / 1200, strings=512, seconds=s / 4)
            for s in (400, 800, 1200)
        ),
        parameters=500_000,
    )


def attention(n: int, weight: float, at_mistakes: float | None, count: int) -> Attention:
    return Attention(
        length=n,
        strings=8,
        layer=1,
        head=2,
        weight=weight,
        at_mistakes=at_mistakes,
        mistakes=count,
        uniform=0.03,
    )


def copying(verdict: str = "estimated") -> Copying:
    rights = {"above_limit": 64, "below_first": 0}
    return Copying(
        label="length generalisation",
        decoding="free_running",
        counted="exact",
        layout="alone",
        trained_to=16,
        training=training(),
        alphabet=Alphabet(symbols="letters", trained=26, tested=26, unseen=0, unseen_letters=()),
        lengths=tuple(
            length(n, rights.get(verdict, 64 if n <= 20 else 0), 0.5) for n in (1, 8, 16, 20, 21, 320)
        ),
        n50=n50(verdict),
        fit=fit(verdict),
        mistakes=None if verdict == "above_limit" else mistakes(),
        layouts=(layout("alone", 1.0), layout("padded with 16", 0.001), layout("start x 8", 0.5)),
        attention=(attention(20, 0.9, None, 0), attention(21, 0.7, 0.1, 8)),
        checked=Checked(length=20, strings=2, same=2),
        cramming=(crammed(1, 5.5), crammed(2, 11.0), crammed(4, None)),
        seconds=12.0,
    )


def zero_shot() -> Copying:
    found = copying()
    change = {
        "label": "in-context copying",
        "counted": "complete",
        "trained_to": None,
        "training": None,
        "cramming": (),
        "alphabet": found.alphabet.model_copy(update={"trained": None}),
    }
    return found.model_copy(update=change)


def nothing() -> Copying:
    left_out = {
        "lengths": (),
        "n50": n50("no_data"),
        "fit": fit("no_data"),
        "mistakes": None,
        "layouts": (),
        "attention": (),
        "cramming": (),
        "checked": None,
    }
    return copying().model_copy(update=left_out)


def run(section: Copying | None = None) -> CopyResults:
    base = sample.study()
    return CopyResults(
        model=base.model,
        config=base.config,
        provenance=base.provenance,
        not_done=base.not_done,
        copying=section or copying(),
        limits=base.limits,
    )
