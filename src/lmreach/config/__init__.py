"""What a run is asked to do: frozen settings shared by the command line, Python and the stored record.

Defaults stand here and nowhere else; a field's description is its help on the command line.
"""

from lmreach.config.bounds import BoundsConfig, BoundsLoadConfig
from lmreach.config.cells import CellsConfig
from lmreach.config.census import CensusConfig, ReachableConfig
from lmreach.config.certificates import JudgeConfig, VerifyConfig
from lmreach.config.copying import CopyConfig, CopyPlan
from lmreach.config.cramming import PUBLISHED, CramPlan, CramSettings, OptimiserConfig
from lmreach.config.executor import ExecutorConfig
from lmreach.config.load import LoadConfig
from lmreach.config.settings import Bos, DType, Protocol, Settings
from lmreach.config.study import CramRunConfig, StudyConfig
from lmreach.config.support import SupportConfig
from lmreach.config.training import CopyTrainConfig

__all__ = [
    "PUBLISHED",
    "Bos",
    "BoundsConfig",
    "BoundsLoadConfig",
    "CellsConfig",
    "CensusConfig",
    "CopyConfig",
    "CopyPlan",
    "CopyTrainConfig",
    "CramPlan",
    "CramRunConfig",
    "CramSettings",
    "DType",
    "ExecutorConfig",
    "JudgeConfig",
    "LoadConfig",
    "OptimiserConfig",
    "Protocol",
    "ReachableConfig",
    "Settings",
    "StudyConfig",
    "SupportConfig",
    "VerifyConfig",
]
