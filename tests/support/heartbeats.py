"""Heartbeats of all processes, as if a whole Weir ran."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from controlplane.health.liveness.readings import read_site
from controlplane.models import Cluster
from controlplane.processes.runtime.beats import beat, now_ms
from controlplane.processes.runtime.process_kinds import DRIVER, PROCESSES
from controlplane.wire.keys import driver_key

if TYPE_CHECKING:
    import redis

# The kinds whose heartbeats the site has in Redis.
KINDS: Final = [kind for kind in PROCESSES if not kind.is_local and kind != DRIVER]


def send_heartbeats(client: "redis.Redis", drivers: Iterable[Cluster] = ()) -> None:
    """Let every process send a heartbeat, also the drivers of these clusters."""
    for kind in KINDS:
        beat(client, kind.name, f"{kind.name}-1")
    for cluster in drivers:
        client.hset(driver_key(cluster.slug), mapping={"pid": 1, "beat_ms": now_ms()})
    read_site(fresh=True)
