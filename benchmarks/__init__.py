"""Measurements of speed and of statistics: ``python -m benchmarks.NAME --help``.

lmreach comes first: it sets how idle threads wait, which torch reads when it is loaded.
"""

import lmreach  # noqa: F401
