"""What runs return and results.json holds: typed, frozen, read and written by every layer above."""

from lmreach.results.answers import ReachabilityResults as ReachabilityResults
from lmreach.results.base import Interval as Interval
from lmreach.results.census import CensusResults as CensusResults
from lmreach.results.copying import CopyResults as CopyResults
from lmreach.results.file import AnyResults as AnyResults
from lmreach.results.file import open_results as open_results
from lmreach.results.file import parse as parse
from lmreach.results.run import RunResults as RunResults
from lmreach.results.study import StudyResults as StudyResults
