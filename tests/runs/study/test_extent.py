"""Where vectors lie beside real inputs, from the certificates."""

from pathlib import Path

import numpy as np
import pytest

from lmreach.engine.store import Proof, Store
from lmreach.results.records import Certified
from lmreach.runs.study.extent import extents


def test_extent_is_that_of_the_stored_vectors(tmp_path: Path) -> None:
    low, high = np.full(3, -1.0), np.full(3, 2.0)
    ids = np.array([1, 2])
    trials = [
        Certified(key=key, reach=reach) for key, reach in (("in", 2), ("out", 1), ("none", 0), ("lost", 1))
    ]
    with Store(tmp_path) as store:
        near, far = np.array([[-1.0, 2.0, 0.0], [1.0, 1.0, 1.0]]), np.array([[0.0, 0.0, 30.0]])
        store.add("in", "cell", Certified(), Proof(near, ids, {}))
        store.add("out", "cell", Certified(), Proof(far, ids, {}))
        found = extents(store, trials, input_rms=0.5, box=(low, high))
    assert set(found) == {"in", "out"}
    assert found["in"].inside_input_box
    assert found["in"].rms_over_inputs == pytest.approx(np.sqrt(8 / 6) / 0.5)
    assert not found["out"].inside_input_box
    assert found["out"].rms_over_inputs == pytest.approx(np.sqrt(300) / 0.5)
