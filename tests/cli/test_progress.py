"""What a long run says: one line per condition, and never silence."""

import io

from rich.console import Console

from lmreach.progress.terminal import QUIET_S, Terminal, step_line


class Hand:
    def __init__(self) -> None:
        self.at = 0.0

    def __call__(self) -> float:
        return self.at


def terminal(hand: Hand) -> tuple[Terminal, io.StringIO]:
    out = io.StringIO()
    made = Terminal(Console(file=out, highlight=False), now=hand)
    # The beat of its own would race the hand.
    assert made._beat is not None
    made._beat.end()
    return made, out


def test_a_step_line_has_steps_strings_tokens_and_n50() -> None:
    line = step_line("random m=4", 40, 100, (7, 9, 3))
    assert line == "random m=4: step 40 of 100, 3 strings, tokens so far 7 9 3, n50 so far about 7"
    assert "..." in step_line("random m=4", 1, 2, tuple(range(32)))
    assert step_line("x", 1, 2, ()).endswith("0 strings, tokens so far ")


def test_without_a_terminal_steps_are_told_every_ten_seconds() -> None:
    hand = Hand()
    watched, out = terminal(hand)
    watched.expect(100.0)
    for second in range(61):
        hand.at = float(second)
        watched.step("random m=1", second, 60, (second,))
    lines = out.getvalue().splitlines()
    assert len(lines) == 60 // QUIET_S
    assert "step 10 of 60" in lines[0]
    assert "about 90 s left" in lines[0] or "about 1 min left" in lines[0] or "about 2 min left" in lines[0]


def test_a_part_that_says_nothing_is_told_for_it() -> None:
    hand = Hand()
    watched, out = terminal(hand)
    watched.stage("decoder cells: shares")
    for second in range(35):
        hand.at = float(second)
        watched.beat()
    lines = out.getvalue().splitlines()
    assert lines[0].endswith("decoder cells: shares")
    assert len(lines) == 1 + 3
    assert "for 0:20 now" in lines[2]


def test_a_reach_of_one_is_one_token() -> None:
    hand = Hand()
    watched, out = terminal(hand)
    hand.at = 11.0
    watched.string("random m=1", 1, "gave_up")
    assert "reached 1 token (gave up)" in out.getvalue()
