"""Where a worker has its model from: by its name, or as it stands in the driver's memory."""

import copy
from dataclasses import dataclass
from typing import Any

from lmreach.config import LoadConfig
from lmreach.errors import InputError, ModelError, problem
from lmreach.models.device_map import is_spread
from lmreach.models.load import device_named, load
from lmreach.models.loaded import LoadedModel
from lmreach.models.resolve import find

__all__ = ["ModelSource"]


@dataclass(frozen=True, slots=True)
class ModelSource:
    """A model to be brought in elsewhere; pickles.

    Attributes
    ----------
    name, config
        By which it is loaded.
    fingerprint
        That it must have.
    model
        The model itself, on the CPU, where it travels; then nothing is loaded by name.
    device
        Where it goes on arrival.
    """

    name: str
    config: LoadConfig
    fingerprint: str
    model: LoadedModel | None = None
    device: str = "auto"

    @classmethod
    def of(cls, model: LoadedModel, name: str, config: LoadConfig, *, files: bool) -> "ModelSource":
        """Return where workers have a model from: those that cannot load it by its name are sent it.

        Parameters
        ----------
        name
            By which it was loaded; empty: it was made or handed in.
        files
            Whether workers see the files of this machine.

        Raises
        ------
        InputError
            It would have to travel, and is spread over several places.
        """
        fingerprint = model.facts.fingerprint
        if name and (files or find(name).kind in ("builtin", "tiny", "hub")):
            return cls(name, config, fingerprint)
        if is_spread(model.model):
            got = f"{name or model.facts.name}, spread by --device-map"
            remedy = "put it where every machine sees it and use its hub name, or leave the map out"
            raise InputError(problem("a model in one place to send to workers", got, remedy))
        place = config.device if name else str(model.device)
        return cls(name or model.facts.name, config, fingerprint, _on_cpu(model), place)

    def bring(self) -> LoadedModel:
        """Return the model.

        Raises
        ------
        ModelError
            It cannot be loaded here, or is another than the driver's.
        """
        if self.model is not None:
            inner: Any = self.model.model
            inner.to(device_named(self.device))
            return self.model
        model = load(self.name, self.config)
        if model.facts.fingerprint != self.fingerprint:
            got = f"{model.facts.fingerprint} of {self.name} on a worker"
            remedy = "give every machine the same files and versions"
            raise ModelError(problem(f"the driver's model ({self.fingerprint})", got, remedy))
        return model


def _on_cpu(model: LoadedModel) -> LoadedModel:
    if model.device.type == "cpu":
        return model
    moved = copy.deepcopy(model)
    inner: Any = moved.model
    inner.to("cpu")
    return moved
