"""Threads by timed steps: the pure choice, and that the user's word and the process's setting stand."""

import pytest
import torch

from lmreach.runs.study import threads
from lmreach.runs.study.threads import quickest_threads, timed_threads


@pytest.mark.parametrize(
    ("seconds", "most", "best"),
    [
        ({2: 0.04, 1: 0.06}, 2, 2),
        ({2: 4.0, 1: 0.2}, 2, 1),
        ({2: 0.100, 1: 0.095}, 2, 2),
        ({16: 1.0, 8: 0.5, 4: 0.4, 2: 0.6, 1: 1.2}, 16, 4),
        ({1: 1.0}, 1, 1),
    ],
)
def test_the_quickest_by_a_clear_margin(seconds: dict[int, float], most: int, best: int) -> None:
    assert quickest_threads(seconds.__getitem__, most) == best


def test_threads_are_put_back(random_model, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(threads, "step_wall_seconds", lambda _: float(torch.get_num_threads()))
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        with timed_threads(random_model) as chosen:
            assert chosen == torch.get_num_threads() == 1
        assert torch.get_num_threads() == 2
        monkeypatch.setenv("OMP_NUM_THREADS", "2")
        with timed_threads(random_model) as chosen:
            assert chosen == torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
