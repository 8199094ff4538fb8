"""What is asked about the cells of a decoder."""

from typing import Annotated, Self

from cyclopts import Parameter
from pydantic import Field, model_validator

from lmreach.config.load import Load, LoadConfig
from lmreach.config.settings import Count, File, Seconds, Seed, Settings, several
from lmreach.errors import InputError, problem

__all__ = ["CellsConfig"]


class CellsConfig(Settings):
    """Which parts are wanted, and how each is made.

    Shares are estimated unless another part is asked for; with ``samples``, ``measure`` or ``convention`` in
    any case.
    """

    load: Load = LoadConfig()
    budget_s: Annotated[Seconds, Parameter(name="--budget")] = Field(
        default=None, description="time for the parts together: 90s, 5m, 1h, or none for no limit"
    )
    measure: str | None = Field(
        default=None,
        description="shares of what: gaussian (norm-shaped; default), ellipsoid, ball, box, empirical",
    )
    support: File | None = Field(
        default=None,
        description="file written by lmreach support: for ball and box, and the box of unreachable tokens",
    )
    prompts: Annotated[tuple[str, ...], several()] = Field(
        default=("random", "self"),
        min_length=1,
        description="prompts of the empirical measure: random, self, text:FILE, ...",
    )
    samples: Count | None = Field(
        default=None, description="states to draw; default: about a minute's worth on two cores"
    )
    convention: str | None = Field(
        default=None,
        description="argmax (what decoding takes; default) or nearest-row (as published)",
    )
    rare: Count | None = Field(
        default=None,
        description="tokens to draw from each distribution for E ln share, rare cells included",
    )
    text: File | None = Field(
        default=None, description="text file whose token frequencies are one distribution of rare"
    )
    unreachable: Annotated[bool, Parameter(negative="")] = Field(
        default=False, description="say of every token whether any hidden state can emit it"
    )
    map: Annotated[tuple[str, ...], several()] = Field(
        default=(),
        description="three texts: draw the cells on the plane through their last hidden states",
    )
    seed: Seed = Field(default=0, description="seed of the states")

    @property
    def shares(self) -> bool:
        """Whether shares are estimated."""
        others = self.unreachable or bool(self.map) or self.rare is not None
        given = (self.measure, self.samples, self.convention)
        return not others or any(value is not None for value in given)

    @property
    def of(self) -> str:
        """Name of the measure that shares are shares of."""
        return self.measure or "gaussian"

    @model_validator(mode="after")
    def _parts_agree(self) -> Self:
        """Refuse, before a model is loaded, what no part has a use for."""
        if self.map and len(self.map) != 3:
            raise InputError(problem("three texts for the map", str(len(self.map)), 'give --map "a" "b" "c"'))
        needs = self.shares and self.of in ("ball", "box")
        if needs and self.support is None:
            remedy = "measure one: lmreach support MODEL --out FILE, then --support FILE"
            raise InputError(problem(f"a support for the {self.of} measure", "support missing", remedy))
        if self.support is not None and not (needs or self.unreachable):
            expected = "--measure ball or box, or --unreachable, with --support"
            raise InputError(problem(expected, "none of them", "leave it out"))
        if self.prompts != type(self).model_fields["prompts"].default and not (
            self.shares and self.of == "empirical"
        ):
            raise InputError(problem("--measure empirical with --prompts", self.of, "leave --prompts out"))
        if self.text is not None and self.rare is None:
            raise InputError(problem("--rare with --text", "none", "say how many tokens, such as --rare 64"))
        return self
