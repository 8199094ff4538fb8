"""Limits from theory."""

from lmreach.cli.options import Bounds, Json
from lmreach.config import BoundsConfig


def bounds(model: str | None = None, /, *, config: Bounds = BoundsConfig(), json: Json = False) -> int:
    """Print every limit that a model's weights, or four numbers, allow.

    Of a model only config, final norm, head and token table are read, not its layers. With --width and
    --vocab no model is needed; --dtype then names the number format (any that --limit-dtype takes).

    Parameters
    ----------
    model
        Hugging Face id, folder, .gguf file, or builtin:verse / builtin:random.
    """
    from lmreach.cli.running import show
    from lmreach.runs.bounds import bounds as run_bounds

    show(run_bounds(model, config), json=json)
    return 0
