"""Explanations at the terminal."""

import pytest

from controlplane.access.roles import Actor
from controlplane.models import Cluster
from tests.controlplane.cli.conftest import Weir

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_node_is_explained(weir: Weir, operator: Actor, sf: Cluster) -> None:
    done = weir("explain", "sf", "node:0", user=operator.name)
    assert (done.code, done.err) == (0, "")
    assert "node 0" in done.out
    answer = weir("explain", "sf", "measure:imbalance", "--json", user=operator.name).json
    assert (answer["subject"], answer["finding"]["value"]) == ("measure:imbalance", None)
    assert weir("explain", "sf", "node:99", user=operator.name).code != 0
