"""The search for proofs: whitened directions for all tokens, exact problems for the rest, then ties."""

from collections.abc import Callable

import numpy as np
import torch
from jaxtyping import Float, Int

from lmreach.experiments.cells.decoder import Decoder
from lmreach.experiments.reach.direction import settle_by_direction
from lmreach.experiments.reach.leads import Judge, Scores
from lmreach.experiments.reach.rows import distinct_rows
from lmreach.experiments.reach.separation import separate
from lmreach.experiments.reach.setting import OnProgress, setting_of
from lmreach.experiments.reach.ties import settle_ties
from lmreach.experiments.reach.verdicts import Method, Verdicts
from lmreach.maths.cells import Region, Verdict

__all__ = ["Run"]


class Run:
    """One run over the distinct rows of a decoder: tokens with the same row and bias share a verdict.

    Attributes
    ----------
    group
        Distinct row of each token, shape (V,).
    verdicts
        What is known of each distinct row.
    """

    def __init__(
        self,
        decoder: Decoder,
        region: Region,
        judge: Judge | None,
        over: Callable[[], bool],
        on_progress: OnProgress,
    ) -> None:
        distinct = distinct_rows(decoder.rows, decoder.bias)
        self.group, self._members = distinct.group, distinct.members
        count = len(distinct.first)
        self.verdicts = Verdicts.none_yet(count)
        rows, bias = decoder.rows, decoder.bias
        if count < decoder.vocab:
            kept = torch.from_numpy(distinct.first).to(rows.device)
            rows, bias = rows[kept], bias[kept]
        scores = Scores.of(rows, bias, decoder.ids[distinct.first], judge)
        self._setting = setting_of(scores, region, self.verdicts, over, on_progress) if count > 1 else None

    def judge_all(self, rows: Int[np.ndarray, " n"]) -> None:
        """Judge distinct rows: the direction first, then exact problems, then ties."""
        setting = self._setting
        if setting is None:
            # All tokens are level everywhere, so none wins and none ties with the best but not with all.
            self.verdicts.verdict[0] = "unreachable"
            return
        losers = settle_by_direction(setting, rows)
        stuck = separate(setting, losers)
        if stuck:
            settle_ties(setting, stuck)

    def verdict_of(self, token: int) -> tuple[Verdict, Method]:
        """Return verdict and method of a token (by its place among the usable ids)."""
        row = int(self.group[token])
        verdict, method = self.verdicts.verdict[row], self.verdicts.method[row]
        if self._members[row] == 1 or verdict == "undetermined":
            return verdict, method
        return ("tie-only" if verdict == "reachable" else verdict), "same row"

    def direction_state(self, row: int) -> Float[np.ndarray, " h"]:
        """Return the state at the whitened direction of a distinct row, float32."""
        assert self._setting is not None
        return np.asarray(self._setting.direction_states(torch.tensor([row]))[0].numpy())
