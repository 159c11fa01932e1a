"""Records in the log of a cluster, for tests of what follows event time."""

from django.conf import settings

from controlplane.models import Cluster
from controlplane.wire.producer import Producer
from tests.support.schemas import REPORTS


def append_at(cluster: Cluster, stream: int, ts_ms: int, records: int = 3) -> str:
    """Append records of a stream with an event time; return their position.

    With three the watermark follows at once: one alone may be that of a wrong clock.
    """
    row = {"ts": ts_ms, "car": 1, "x": 0, "y": 0, "speed": 5}
    with Producer(cluster.log_url or settings.REDIS_URL, cluster.slug) as producer:
        position = producer.append({stream: [row] * records}, schemas={stream: REPORTS})
    assert position is not None
    return position
