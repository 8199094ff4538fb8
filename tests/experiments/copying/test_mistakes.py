"""First mistakes: against a slow reference, and on copiers whose way of failing is known."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmreach.experiments.copying.mistakes import ORDERS, explain, first_wrong

START, SEPARATOR, END = 100, 101, 102


def asked(string: list[int]) -> tuple[np.ndarray, np.ndarray]:
    return np.array([START, *string, SEPARATOR]), np.array([*string, END])


def looked_up(prompt: np.ndarray, answer: np.ndarray, k: int) -> np.ndarray:
    """Copy by looking for the last k ids in the prompt and taking what follows the first place found."""
    told: list[int] = []
    for i in range(len(answer)):
        if i < k:
            told.append(int(answer[i]))  # nothing to look for yet: the beginning is given
            continue
        key = told[-k:]
        at = next(j for j in range(k, len(prompt)) if prompt[j - k : j].tolist() == key)
        told.append(END if prompt[at] == SEPARATOR else int(prompt[at]))
    return np.asarray(told)


def slow_order(prompt: np.ndarray, told: list[int], emitted: int) -> int:
    """Largest k <= 4 for which ``emitted`` follows an occurrence of the last k ids told."""
    best = 0
    for k in ORDERS:
        for j in range(k, len(prompt)):
            if k <= len(told) and prompt[j - k : j].tolist() == told[-k:] and prompt[j] == emitted:
                best = k
    return best


@given(st.lists(st.integers(0, 3), min_size=1, max_size=24), st.data())
def test_orders_are_those_of_a_slow_reference(string: list[int], data: st.DataObject) -> None:
    prompt, answer = asked(string)
    place = data.draw(st.integers(0, len(string) - 1))
    emitted = data.draw(st.sampled_from([s for s in range(5) if s != answer[place]]))
    found = explain(prompt, answer, emitted, place, np.arange(5))
    told = [*prompt, *answer[:place]]
    assert found.order == slow_order(prompt, told, emitted)
    orders = [slow_order(prompt, told, s) for s in [*range(5), SEPARATOR] if s != answer[place]]
    assert found.ambiguity == max(orders)
    wrong = [order for s, order in zip([s for s in range(5) if s != answer[place]], orders, strict=False)]
    assert found.chance == pytest.approx([np.mean([order >= k for order in wrong]) for k in ORDERS])
    assert all(a >= b for a, b in zip(found.usual, found.usual[1:], strict=False))


@given(st.integers(1, 3), st.integers(0, 2**32 - 1))
def test_a_look_up_of_k_characters_fails_where_they_stand_twice(k: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    prompt, answer = asked(rng.integers(6, size=40).tolist())
    emitted = looked_up(prompt, answer, k)
    place = first_wrong(emitted, answer)
    if place is None:
        return
    found = explain(prompt, answer, int(emitted[place]), place, np.arange(6))
    assert found.ambiguity >= k
    if found.kind == "symbol":
        assert found.order >= k


@given(st.lists(st.integers(0, 6), min_size=1, max_size=20), st.data())
def test_distances_are_those_to_the_nearest_occurrence(string: list[int], data: st.DataObject) -> None:
    prompt, answer = asked(string)
    prompt = np.concatenate([prompt, string, [SEPARATOR], prompt])  # as after a solved example
    place = data.draw(st.integers(0, len(string) - 1))
    emitted = data.draw(st.sampled_from([s for s in range(8) if s != string[place]]))
    found = explain(prompt, answer, emitted, place, np.arange(8))
    apart = {s: min((abs(i - place) for i, t in enumerate(string) if t == s), default=0) for s in range(8)}
    assert found.distance == apart[emitted]
    assert found.near == pytest.approx([sum(0 < d <= k for d in apart.values()) / 7 for k in ORDERS])


def test_a_slip_by_one_place_is_seen() -> None:
    prompt, answer = asked(list(range(10)))
    for shift in (-1, 1):
        assert explain(prompt, answer, int(answer[5 + shift]), 5, np.arange(10)).distance == 1
    assert explain(prompt, answer, 3, 10, np.arange(10)).distance == 0  # after the last character


def test_kinds() -> None:
    prompt, answer = asked([0, 1, 2, 3])
    kinds = [
        explain(prompt, answer, out, place, np.arange(5)).kind
        for out, place in ((4, 1), (END, 2), (0, 4), (99, 0))
    ]
    assert kinds == ["symbol", "ended early", "did not end", "other token"]
    assert first_wrong(answer, answer) is None


@pytest.mark.parametrize("length", [1, 2, 3])
def test_the_shortest_strings_can_go_wrong_everywhere(length: int) -> None:
    prompt, answer = asked([0] * length)
    for place in range(length + 1):
        found = explain(prompt, answer, 1, place, np.arange(3))
        assert found.order == found.distance == 0


def test_no_repeat_means_no_order_and_no_ambiguity() -> None:
    prompt, answer = asked(list(range(10)))
    found = explain(prompt, answer, 3, 7, np.arange(10))
    assert (found.order, found.ambiguity, set(found.chance), set(found.usual)) == (0, 0, {0.0}, {0.0})
    assert (found.distance, found.emitted) == (4, 3)
