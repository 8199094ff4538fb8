"""What one measurement within a set of vectors was, as a line of JSON: the one writer and reader of it."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Self

from lmreach.config import OptimiserConfig
from lmreach.config.within import parse_within
from lmreach.errors import InputError, problem
from lmreach.results.base import Interval, Result

__all__ = ["Asked", "Record", "append", "read", "read_all"]


class Asked(Result):
    """What was asked for: two measurements of the same are one.

    Attributes
    ----------
    targets
        Kind of the strings, a file by its own name.
    length
        Length limit in tokens.
    method
        How the search went, see `benchmarks.cram_formats.methods`.
    optimiser
        Settings of the search; among them ``within``, ``start_scale``, ``max_steps`` and ``seed``.
    """

    model: str
    fingerprint: str
    m: int
    targets: str
    strings: int
    length: int
    method: str
    optimiser: OptimiserConfig


class Record(Result):
    """One measurement.

    Attributes
    ----------
    width, vocab
        d, and usable ids.
    free
        Free coordinates of a vector: K of a subspace, else d.
    bits
        Bits that one vector is stored in.
    limit
        Tokens that m vectors of the set can tell apart at most: m ln |S| / ln V.
    reaches
        Of each string, in its order.
    growth
        Of each string: steps taken and tokens of the prefix, each time the prefix grew.
    steps_taken
        Least and most steps of a string.
    positions_per_string
        Model positions; one that is stepped forth and back counts three times.
    utilisation
        Bits of n50 ids over the bits of the m vectors.
    """

    asked: Asked
    width: int
    vocab: int
    free: int
    bits: float
    limit: float
    n50: Interval
    utilisation: Interval
    reaches: tuple[int, ...]
    growth: tuple[tuple[tuple[int, int], ...], ...]
    steps_taken: tuple[int, int]
    positions_per_string: float
    processor_seconds: float
    seconds: float
    threads: int
    dtype: str
    lmreach: str
    commit: str | None
    versions: dict[str, str]
    started: str

    @property
    def within(self) -> str:
        """The set; ``float32`` where vectors were held to none."""
        return self.asked.optimiser.within or "float32"

    @property
    def format(self) -> str:
        """Number format of a free coordinate."""
        held = parse_within(self.asked.optimiser.within) if self.asked.optimiser.within else None
        return "float32" if held is None or held.format is None else held.format

    @property
    def bits_per_coordinate(self) -> float:
        """Bits of one free coordinate, a vector's own scale shared out among them."""
        return self.bits / self.free

    @property
    def free_bits(self) -> float:
        """Bits b K m of all vectors."""
        return self.bits * self.asked.m

    @property
    def ratio(self) -> float | None:
        """Limit over n50; None where n50 has no value."""
        return self.limit / self.n50.value if self.n50.value else None

    @classmethod
    def parse(cls, line: str) -> Self:
        """Read a line."""
        return cls.model_validate_json(line)


def append(path: Path, record: Record) -> None:
    """Add a line to a file; one write, so that lines of two measurements do not mix."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as file:
        file.write(record.model_dump_json() + "\n")


def read(path: Path) -> list[Record]:
    """Return the records of a file; none where it does not exist yet.

    Raises
    ------
    InputError
        A line that is no record, by its number.
    """
    if not path.exists():
        return []
    found = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        try:
            found.append(Record.parse(line))
        except ValueError as error:
            got = f"line {number} of {path.name}: {str(error).splitlines()[0]}"
            raise InputError(
                problem("a record of benchmarks.cram_formats", got, "remove the line")
            ) from error
    return found


def read_all(paths: Iterable[Path]) -> Sequence[Record]:
    """Return the records of some files, in their order."""
    return [record for path in paths for record in read(path)]
