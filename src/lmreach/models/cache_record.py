"""For which batches and lengths a model's cache was found to agree with passes that keep nothing."""

from dataclasses import dataclass, field

__all__ = ["CacheRecord"]


@dataclass
class CacheRecord:
    """What decoding with a cache has been compared with so far.

    Attributes
    ----------
    lengths
        Rows in the batch -> longest sequence in positions that agreed.
    broken_at
        Rows and positions of a decode that did not agree: from then on nothing is kept between steps.
    """

    lengths: dict[int, int] = field(default_factory=dict)
    broken_at: tuple[int, int] | None = None

    @property
    def broken(self) -> bool:
        """Whether some decode did not agree."""
        return self.broken_at is not None

    def covers(self, batch: int, length: int) -> bool:
        """Whether such a decode needs no comparison any more."""
        return self.lengths.get(batch, 0) >= length

    def note(self, batch: int, length: int, *, agreed: bool) -> None:
        """Write a comparison down."""
        if agreed:
            self.lengths[batch] = max(length, self.lengths.get(batch, 0))
        else:
            self.broken_at = (batch, length)
