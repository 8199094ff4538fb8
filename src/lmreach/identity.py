"""Whether two fingerprints name one model: its weights, and the settings that they are computed with.

A fingerprint is ``WEIGHTS-SETTINGS`` (see `models.fingerprint`). Older runs know the weights alone.
"""

from lmreach.errors import OutputError, problem

__all__ = ["require_same", "same_model", "weights_of"]


def weights_of(fingerprint: str) -> str:
    """Return the part that names the weights: it alone is in the keys of trials."""
    return fingerprint.partition("-")[0]


def same_model(recorded: str, present: str) -> bool:
    """Say whether two fingerprints agree in everything that both of them know."""
    (weights, _, settings), (others, _, theirs) = recorded.partition("-"), present.partition("-")
    return weights == others and (settings == theirs or not settings or not theirs)


def require_same(
    recorded: str | None, present: str, *, where: str, remedy: str, difference: str = ""
) -> str | None:
    """Refuse a model that is not the one recorded.

    Parameters
    ----------
    where
        What recorded it, for the message.
    difference
        Which settings differ, where that is known.

    Returns
    -------
    str or None
        A note for the user where less than the whole was compared.

    Raises
    ------
    OutputError
        Other weights, or the same with other settings.
    """
    if recorded is None:
        return None
    if weights_of(recorded) != weights_of(present):
        wanted, got = f"weights {weights_of(recorded)}", f"weights {weights_of(present)}"
        raise OutputError(problem(f"the model of {where} ({wanted})", got, remedy))
    if not same_model(recorded, present):
        got = f"the same weights with other settings in config.json{difference and ': ' + difference}"
        raise OutputError(problem(f"the model of {where} (fingerprint {recorded})", got, remedy))
    if "-" in present and "-" not in recorded:
        return f"{where} knows the weights alone: that the model's settings are the same was not recorded"
    return None
