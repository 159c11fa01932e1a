"""Weights and floors out of range, and by whom."""

import pytest

from controlplane.access.roles import Actor
from controlplane.catalog.query_checks import FLOOR, WEIGHT, setting_faults
from controlplane.errors import Invalid
from controlplane.models import Cluster
from controlplane.queries.spec import QuerySpec
from controlplane.topology import queries
from tests.support.texts import SUMMARY

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize(
    ("weight", "floor", "fields"),
    [
        (-1.0, 0.0, ["shedding_weight"]),
        (float("nan"), 0.0, ["shedding_weight"]),
        (1.0, 1.1, ["shedding_floor"]),
        (2e6, float("inf"), ["shedding_weight", "shedding_floor"]),
        (0.0, 1.0, []),
    ],
)
def test_bounds(weight: float, floor: float, fields: list[str]) -> None:
    assert list(setting_faults({WEIGHT: weight, FLOOR: floor})) == fields


def test_a_submitted_query_has_them(operator: Actor, sf: Cluster) -> None:
    spec = QuerySpec("q", ("s0",), SUMMARY, shedding_weight=3.0, shedding_floor=0.2)
    query = queries.submit(operator, sf, spec)
    assert (query.shedding_weight, query.shedding_floor) == (3.0, 0.2)
    with pytest.raises(Invalid) as invalid:
        queries.submit(operator, sf, QuerySpec("r", ("s0",), SUMMARY, shedding_floor=2.0))
    assert list(invalid.value.fields) == ["shedding_floor"]
