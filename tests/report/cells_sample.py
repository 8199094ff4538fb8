"""Invented parts about decoder cells; no number in them was measured."""

from lmreach.results.cells import (
    Band,
    CellLimit,
    CellMap,
    Cells,
    CellShare,
    MapCell,
    MapText,
    MeanLogShare,
    Proof,
    RankedShare,
    Rare,
    RareToken,
    Shares,
    SlopeRatio,
    Unreachable,
)

SQUARE = ((0.0, 0.0), (1.0, 0.0), (1.0, 1.0), (0.0, 1.0))


def shares(text: str = "the") -> Shares:
    return Shares(
        measure="gaussian",
        measure_words="norm-shaped Gaussian (RMSNorm)",
        independent=True,
        convention="argmax",
        seed=0,
        decided_in_float64=2,
        words="900 of 1,000 cells were hit by 20,000 states",
        hit_mean_log_share=-8.1,
        cells=1000,
        samples=20000,
        hit=900,
        coverage=0.9,
        hit_once=50,
        hit_twice=40,
        unseen_mass=0.0025,
        unhit_limit=1.5e-4,
        gini=0.7,
        holders_80=300,
        share_holding_80=0.3,
        confidence=0.95,
        ranks=(
            RankedShare(rank=1, share=0.02, low=0.018, high=0.022),
            RankedShare(rank=900, share=5e-5, low=1.3e-6, high=2.8e-4),
        ),
        largest=(CellShare(id=7, text=text, share=0.02, low=0.018, high=0.022),),
    )


def mean(name: str, value: float) -> MeanLogShare:
    limit = CellLimit(value=120.0, low=110.0, high=None if name == "self" else 131.0, log_packing=1100.0)
    return MeanLogShare(
        name=name,
        draws=64,
        distinct=60,
        below=0,
        value=value,
        se=0.4,
        se_draws=0.3,
        se_estimates=0.2,
        low=-10.3,
        high=-5.7,
        confidence=0.95,
        replicates=(value, value),
        limits={"ball (paper)": limit},
    )


def rare(text: str = "the") -> Rare:
    found = RareToken(
        value=-9.0,
        low=-10.0,
        high=-8.0,
        confidence=0.95,
        id=7,
        text=text,
        levels=3,
        se=0.5,
        at_most=None,
        logs=(-9.0, -9.1),
        rivals=20,
        twin=None,
        seconds=0.1,
    )
    below = RareToken(
        value=None,
        verdict="below",
        confidence=0.95,
        id=8,
        text="b",
        levels=9,
        se=None,
        at_most=-60.0,
        logs=(),
        rivals=20,
        twin=7,
        seconds=0.2,
    )
    return Rare(
        measure="norm-shaped Gaussian",
        particles=128,
        replicates=8,
        start=1024,
        floor_nats=-60.0,
        draws_per_source=64,
        limit_dtype="float16",
        tokens=(found, below),
        means=(mean("uniform", -9.5), mean("self", -6.0)),
        ratios=(SlopeRatio(text="self", uniform="uniform", value=1.58, low=1.4, high=1.8, se_log=0.06),),
        seconds=3.0,
    )


def unreachable(text: str = "the", judged: int = 1000) -> Unreachable:
    return Unreachable(
        support="ellipsoid",
        resolution=1e-9,
        vocab=1000,
        judged=judged,
        counts={"reachable": judged - 4, "tie-only": 2, "unreachable": 1, "undetermined": 1},
        methods={"direction": judged - 1, "certificate": 1},
        tie_only=(4, 5),
        unreachable=(3,),
        undetermined=(6,),
        certificates={"3": Proof(ids=(1, 2), weights=(0.4, 0.5), uniform=0.1, bound=-0.01)},
        reasons={"6": "the solver gave no answer"},
        smallest_margin=0.01,
        padded_leads=0,
        seconds=2.0,
        texts={"3": text, "4": text, "5": "b"},
        share_removed={"10": 0.01, "100": 0.1},
        share_removed_with_ties={"10": 0.03, "100": 0.26},
    )


def cell_map(text: str = "the") -> CellMap:
    return CellMap(
        model=text,
        rectangle=(0.0, 1.0, 0.0, 1.0),
        cells=(MapCell(id=7, text=text, area=1.0, corners=SQUARE),),
        levels=(0.5,),
        bands=((Band(id=7, corners=SQUARE),),),
        texts=tuple(MapText(text=text, x=x, y=0.5, id=7, token=text, margin=0.2) for x in (0.2, 0.5, 0.8)),
        outline=((0.1, 0.1), (0.9, 0.1), (0.5, 0.9)),
    )


def cells(text: str = "the") -> Cells:
    return Cells(shares=shares(text), rare=rare(text), unreachable=unreachable(text), map=cell_map(text))
