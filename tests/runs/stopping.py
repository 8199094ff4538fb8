"""A stop that comes after a known number of questions."""


class After:
    """Says stop at the n-th question."""

    def __init__(self, questions: int) -> None:
        self.left = questions

    def __call__(self) -> bool:
        self.left -= 1
        return self.left < 0
