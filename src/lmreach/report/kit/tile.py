"""One number of a first screen."""

from dataclasses import dataclass

__all__ = ["Tile"]


@dataclass(frozen=True, slots=True)
class Tile:
    """What a number is, its value with unit and interval, and what it rests on."""

    label: str
    value: str
    unit: str
    interval: str
    basis: str
