"""Feasible inputs of two streams."""

from datetime import datetime

import pytest

from controlplane.models import Cluster
from controlplane.planners.shedding.arming import compute
from controlplane.planners.shedding.feasible import CELLS, feasible_inputs
from controlplane.planners.shedding.observation import read_input
from controlplane.planners.shedding.report import factor_of

pytestmark = pytest.mark.django_db(transaction=True)


def test_the_border_is_where_the_input_factor_is_one(busy: Cluster, now: datetime) -> None:
    ladder, given = compute(busy).ladder, read_input(busy, now)
    inputs = feasible_inputs(busy, ladder, given)
    assert inputs is not None
    assert (inputs.x, inputs.y, inputs.now, inputs.others) == ("s0", "s2", (300.0, 200.0), 1)
    assert (len(inputs.x_rates), len(inputs.y_rates)) == CELLS
    ids = dict(busy.streams.values_list("name", "id"))
    top = max(inputs.y_rates)
    for x, y in inputs.border:
        rates = given.rates | {ids["s0"]: x, ids["s2"]: y}
        factor = factor_of(ladder, rates)
        assert factor == pytest.approx(1.0) or (factor < 1 and y >= top)
    assert inputs.track[-1] == pytest.approx((300.0, 200.0))
