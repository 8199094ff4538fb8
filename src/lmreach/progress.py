"""What a long run tells whoever watches: stages, finished strings and the time still needed."""

from typing import Protocol


class Progress(Protocol):
    """Receiver of a run's progress; every method is cheap and must not raise."""

    def stage(self, text: str) -> None:
        """Say what begins now."""

    def plan(self, strings: int) -> None:
        """Say how many strings are planned from here on."""

    def string(self, cell: str, reach: int, outcome: str) -> None:
        """Say that one string has finished."""

    def expect(self, seconds: float | None) -> None:
        """Say how long the rest will take, as measured so far; None: not known yet."""

    def note(self, text: str) -> None:
        """Say something that the user should know."""


class Silent:
    """Progress that nobody watches."""

    def stage(self, text: str) -> None:
        """Ignore."""

    def plan(self, strings: int) -> None:
        """Ignore."""

    def string(self, cell: str, reach: int, outcome: str) -> None:
        """Ignore."""

    def expect(self, seconds: float | None) -> None:
        """Ignore."""

    def note(self, text: str) -> None:
        """Ignore."""
