"""What became of certificates, and of somebody's own vectors, as lines."""

from collections.abc import Iterator

from lmreach.results.certificates import DecodedCertificate, Judgement, Verification

__all__ = ["decoded_lines", "judgement_lines", "verification_lines"]


def verification_lines(found: Verification) -> Iterator[str]:
    """Name every claim that does not hold, count those that do, and say what rounding leaves of them."""
    for verdict in found.verdicts:
        if not verdict.held:
            yield f"{verdict.status.upper()} {verdict.key} ({verdict.cell}): {verdict.why}"
    held = [verdict for verdict in found.verdicts if verdict.held]
    tokens = sum(verdict.emitted for verdict in held)
    yield f"{len(held)} of {len(found.verdicts)} certificates held ({tokens} tokens)"
    if found.quantised:
        yield ""
        yield "vectors rounded to    bits/coordinate   claims that hold whole   tokens that still come out"
    for row in found.quantised:
        whole, kept = f"{row.hold_whole} of {row.claims}", f"{row.tokens_kept} of {row.tokens_claimed}"
        yield f"{row.format:<20}{row.bits_per_coordinate:>17.2f}{whole:>25}{kept:>29}"


def judgement_lines(found: Judgement) -> Iterator[str]:
    """Say how far the vectors came, what they tell, and what limits leave possible."""
    gap = "" if found.smallest_gap is None else f", smallest top-two gap {found.smallest_gap:.3g}"
    yield f"emitted        {found.reach} of {found.n} tokens from {found.m} vectors{gap}"
    if found.cut_from is not None:
        yield f"target         its first {found.n} of {found.cut_from} tokens: the context holds no more"
    if found.wanted_next is not None:
        yield f"then           wanted {found.wanted_next}, came {found.emitted_next}"
    bits = f"{found.bits_without:.1f} bits without the vectors, {found.bits_with:.1f} with them"
    yield f"information    {bits}: {found.bits_per_coordinate:.4f} bits per coordinate"
    stored = f"{found.bits_ids:.0f} bits of ids in {found.bits_vectors} bits of vectors"
    yield f"storage        {stored}: {found.bits_ids / found.bits_vectors:.3f}"
    for curve in found.curve:
        n50 = "none" if curve.n50 is None else f"{curve.n50:.1f}"
        n50 += "" if curve.max_steps is None else f" after {curve.max_steps:,} steps"
        far = f"{curve.share_at_least_as_far:.0%} of {curve.strings} strings got as far"
        yield f"cramming       {curve.target}, m = {curve.m}: n50 {n50}; {far}"
    yield ""
    yield "reached, of the longest length that each limit leaves fully possible"
    for limit in found.limits:
        note = "" if limit.packing != "convention" else " (a convention, no bound)"
        numbers = f"{limit.longest_fully_possible:>8}{limit.reached_share:>9.1%}{note}"
        yield f"  {limit.name:<28}{limit.premise:<8}{numbers}"


def decoded_lines(found: DecodedCertificate) -> Iterator[str]:
    """Give the text, and say so where it is not what is claimed."""
    yield found.text
    if not found.as_claimed:
        yield "(not what the certificate claims)"
