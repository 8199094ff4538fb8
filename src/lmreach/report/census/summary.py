"""The first screen of a census: how many prompts, how many outputs, how popular the most popular one is."""

from lmreach.report.census.entries import rough
from lmreach.report.kit.format import hundredths, number
from lmreach.report.kit.tile import Tile
from lmreach.results.census import Census, GridCount, TokenCount

__all__ = ["tiles"]


def tiles(census: Census) -> tuple[Tile, ...]:
    """Return the tiles of the largest entry: real prompts before grids, the longest prompts, most vectors."""
    if census.tokens:
        return _of_tokens(max(census.tokens, key=lambda entry: entry.prompt_tokens))
    return _of_grid(max(census.grids, key=lambda grid: grid.m)) if census.grids else ()


def _of_tokens(entry: TokenCount) -> tuple[Tile, ...]:
    last, prompts = entry.lengths[-1], int(entry.prompts)
    of = "one token" if entry.prompt_tokens == 1 else f"{entry.prompt_tokens} tokens"
    length = f"of {int(last.length)} tokens"
    found = [
        Tile(
            "Prompts tried", number(prompts), f"of {of}", "", "all of them" if entry.complete else "at random"
        ),
        Tile(
            "Different outputs",
            number(int(last.distinct)),
            length,
            "",
            f"one for every {prompts / last.distinct:.1f} prompts",
        ),
    ]
    if last.top:
        share = last.top[0].prompts / prompts
        found.append(
            Tile(
                "Most popular output",
                hundredths(share),
                "of the prompts",
                "",
                f"{number(last.top[0].prompts)}",
            )
        )
    if last.chao1 is not None:
        told = f"95 % interval {rough(last.chao1.low)} to {rough(last.chao1.high)}"
        found.append(
            Tile(
                "All prompts have at least",
                f"about {rough(last.chao1.value)}",
                "outputs",
                told,
                "Chao's estimate",
            )
        )
    return tuple(found)


def _of_grid(grid: GridCount) -> tuple[Tile, ...]:
    last = grid.lengths[-1]
    vectors = "1 vector" if grid.m == 1 else f"{grid.m} vectors"
    counted = "counted" if grid.exact else "estimated"
    found = [
        Tile("Prompts tried", number(int(grid.prompts)), f"of {vectors}", "", "all of the grid"),
        Tile("Different outputs", rough(float(last.distinct)), f"of {int(last.length)} tokens", "", counted),
    ]
    if grid.fully_reachable is not None:
        longest = number(grid.fully_reachable)
        found.append(Tile("Every text comes out up to", longest, "tokens", "", "longer ones only in part"))
    return tuple(found)
