import dataclasses
from typing import Any

import numpy as np
import pytest

from algorithms.placement.offline import Mms
from tests.algorithms.placement.certificate import certify
from tests.algorithms.placement.instances import chain


def test_a_true_plan_passes() -> None:
    certify(chain(), Mms().solve(chain()), [4, 4])


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"assignment": np.array([0] * 7, np.int32)}, "7 assignments"),
        ({"assignment": np.array([0] * 7 + [2], np.int32)}, "server 2 of 2"),
        ({"assignment": np.zeros(8, np.int32)}, "hosts 8, cap 4"),
        ({"traffic": 4.0}, "traffic 4.0 where 5.0"),
        ({"replication_factor": None}, "replication factor None"),
        ({"loads": np.array([5, 3])}, "loads"),
        ({"max_load": 5}, "largest load 5"),
        ({"lower_bound": 6.0}, "lower bound 6.0"),
    ],
)
def test_a_false_plan_is_refuted(change: dict[str, Any], fault: str) -> None:
    """A certificate that passes everything would make every other test empty."""
    plan = dataclasses.replace(Mms().solve(chain()), **change)
    with pytest.raises(AssertionError, match=fault):
        certify(chain(), plan, [4, 4])
