"""The keys of a query at the terminal."""

from typing import Any

import pytest
from django.utils import timezone

from controlplane.access.roles import Actor
from controlplane.models import Cluster
from tests.controlplane.cli.conftest import Weir
from tests.support.cluster import placed_split
from tests.support.key_samples import sampled

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def by(operator: Actor, sf: Cluster) -> dict[str, Any]:
    placed_split(operator, sf, "q", "key")
    return {"user": operator.name}


def test_keys_and_groupings_are_tables(weir: Weir, by: dict[str, Any], sf: Cluster) -> None:
    assert "no keys were sampled" in weir("queries", "keys", "sf", "q", **by).out
    sampled(sf.queries.get(name="q"), timezone.now())
    done = weir("queries", "keys", "sf", "q", **by)
    assert done.code == 0, done.err
    for text in ("taxi", "40", "in use", "recommended", "points of capacity"):
        assert text in done.out


def test_keys_as_json(weir: Weir, by: dict[str, Any], sf: Cluster) -> None:
    sampled(sf.queries.get(name="q"), timezone.now())
    report = weir("queries", "keys", "sf", "q", "--json", **by).json
    assert (report["query"], report["keys"][0]["label"]) == ("q", "taxi")
    assert len(report["groupings"][0]["loads"]) == 8
    assert weir("queries", "keys", "sf", "none", **by).code != 0
