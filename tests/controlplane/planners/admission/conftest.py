from datetime import datetime

import pytest

from controlplane.access.roles import Actor
from controlplane.models import Cluster, Stream
from controlplane.topology.split_nodes import set_split_capacity
from tests.support.admission import arrived


@pytest.fixture
def loaded(operator: Actor, sf: Cluster, now: datetime) -> Cluster:
    """Split nodes of 100 records/s with 80 and 50 records/s."""
    set_split_capacity(operator, sf, 100.0, emulated=False)
    Stream.objects.filter(cluster=sf).exclude(name="s0").update(split=1)
    Stream.objects.filter(cluster=sf, name="s0").update(split=0)
    arrived(sf, now, {"s0": [80.0] * 20} | {f"s{i}": [10.0] * 20 for i in range(1, 6)})
    sf.refresh_from_db()
    return sf
