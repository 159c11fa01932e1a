"""weir clusters skip-batch."""

import pytest
import redis

from controlplane.access.roles import Actor
from controlplane.models import Cluster
from controlplane.wire import attempts
from controlplane.wire.log import open_log
from controlplane.wire.log.values import START, Block
from tests.controlplane.cli.conftest import Weir
from tests.support.cluster import stream_id

pytestmark = pytest.mark.nightly("commands")


def test_it_tells_before_it_skips(
    weir: Weir, admin: Actor, cluster: Cluster, redis_url: str
) -> None:
    told = weir("clusters", "skip-batch", "sf", user=admin.name)
    assert (told.code, told.out.strip()) == (0, "no batch fails again and again")
    log = open_log("", "sf", redis_url)
    end = log.append({stream_id(cluster, "s1"): Block(12, b"tides", 2)})
    log.close()
    assert end
    with redis.Redis.from_url(redis_url) as client:
        for driver in "abcd":
            attempts.begin(client, "sf", attempts.BatchAttempt(9, 0, START, end, 12, 1), driver)
        told = weir("clusters", "skip-batch", "sf", "--json", user=admin.name)
        assert (told.json["batch"], told.json["records"]) == (9, {"s1": 12})
        assert not attempts.is_skipped(client, "sf", 9)
        told = weir(
            "clusters", "skip-batch", "sf", "--batch", 9, "--reason", "bad", user=admin.name
        )
        assert told.code == 0
        assert "s1" in told.out
        assert weir("clusters", "skip-batch", "sf", "--batch", 8, "--reason", "bad").code != 0
