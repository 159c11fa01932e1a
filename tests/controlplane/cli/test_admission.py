"""Split nodes, characteristics, redirections, outlooks and what-if at the terminal."""

from typing import Any

import pytest
from django.utils import timezone

from controlplane.access.roles import Actor
from controlplane.models import Cluster
from tests.controlplane.cli.conftest import Weir
from tests.support.admission import arrived

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.nightly("commands")]


@pytest.fixture
def by(operator: Actor, sf: Cluster) -> dict[str, Any]:
    return {"user": operator.name}


def test_characteristics_are_changed_one_by_one(
    weir: Weir, by: dict[str, Any], sf: Cluster
) -> None:
    """A name without a value is not declared any more."""
    call = ("streams", "characteristics", "sf", "s0")
    done = weir(*call, "average=60", "period_s=3600", "transition=jump", **by)
    assert done.code == 0, done.err
    done = weir(*call, "average=70", "period_s=", "--json", **by)
    assert done.json["declared"] == {"average": 70.0, "transition": "jump"}
    assert weir(*call, "average", **by).code == 2
    refused = weir(*call, "peak=5", **by)
    assert refused.code == 2
    assert "average" in refused.err
    assert sf.streams.get(name="s0").characteristics == {"average": 70.0, "transition": "jump"}


def test_split_nodes_and_redirections(weir: Weir, by: dict[str, Any], sf: Cluster) -> None:
    done = weir("clusters", "split-capacity", "sf", "120", "--emulated", "--json", **by)
    assert [row["capacity"] for row in done.json] == [120.0] * sf.splits
    source = sf.streams.get(name="s0").split
    assert weir("streams", "redirect", "sf", "s0", "1", **by).code == 0
    assert weir("streams", "redirect", "sf", "s0", "0", "--reason", "load", **by).code == 0
    rows = weir("streams", "redirections", "sf", "s0", "--json", **by).json
    assert (rows[0]["source"], rows[0]["target"], rows[0]["reason"]) == (1, 0, "load")
    assert len(rows) == 1 + (source != 1)
    assert "120" in weir("clusters", "split-nodes", "sf", **by).out


def test_an_outlook_and_a_what_if(weir: Weir, by: dict[str, Any], sf: Cluster) -> None:
    assert weir("streams", "outlook", "sf", "s0", "--json", **by).json is None
    arrived(sf, timezone.now(), {"s0": [30.0] * 20})
    assert weir("streams", "outlook", "sf", "s0", "--json", **by).json["forecast"][0] == 30.0
    assert "30" in weir("streams", "outlook", "sf", "s0", **by).out
    assert weir("streams", "what-if", "sf", "average=5", **by).code == 1
    weir("clusters", "split-capacity", "sf", "100", **by)
    result = weir("streams", "what-if", "sf", "average=5", "--json", **by).json
    assert (result["capacity"], result["opened"]) == (100.0, False)
    assert "capacity" in weir("streams", "what-if", "sf", "average=5", **by).out
