"""Split nodes, characteristics, redirections, outlooks and what-if at the terminal."""

from typing import Any

import pytest

from controlplane.access.roles import Actor
from controlplane.models import Cluster
from tests.controlplane.cli.conftest import Weir

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
