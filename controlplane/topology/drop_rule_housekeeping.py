"""What drops leave behind: records they lost are counted, steps that nothing needs are forgotten.

A step is needed as long as a record may come for a window that began before the next one. A record
is on time unless it is older than its block's watermark by more than the lateness. Watermarks only
grow: what is appended from now on is on time only behind the newest event time of now, less the
largest lateness. What was appended before is on its way; it has arrived once all streams are read
up to the log's end of now, and no node has records waiting. So forgetting takes two looks: one
notes how far the log goes (Drop.settles), a later one sees that the pipeline is there.
"""

import json
import math
from collections.abc import Sequence
from typing import Final

from django.db.models import F

from controlplane.models import Cluster, Drop, Query
from controlplane.telemetry.samples import Row, Sample
from controlplane.telemetry.time_series import latest_values
from controlplane.topology.apply import TopologyChange, apply
from controlplane.topology.drop_rules import edge_text
from controlplane.topology.event_time import tip_of
from controlplane.topology.versions import retry_when_moved
from controlplane.wire.log.values import position_key
from controlplane.wire.query_text import QueryText
from controlplane.wire.routing.cluster_actions import SetDropRule
from controlplane.wire.routing.drop_rules import INPUT, needed_since, remove_old_steps

# The time in which the shown records/s follow a change by 63 %.
PER_S_TAU: Final = 10.0


def settle(cluster: Cluster) -> int:
    """Forget the steps of a cluster's drops that no open window needs; returns of how many drops.

    Raises `Away` if the newest position of the log is unknown.
    """
    drops = [drop for drop in cluster.drops.all() if drop.value.window_ms]
    if not drops:
        return 0
    # Before the sample, which then shows what happened up to the position.
    read = Cluster.objects.values_list("read_position", flat=True).get(pk=cluster.pk)
    sample = latest_values(cluster) or {}
    settled = 0
    for drop in drops:
        if drop.settles is None:
            _note(cluster, drop)
        elif _has_processed(read, sample, drop.settles["position"]):
            settled += _forget(drop)
    return settled


def count(cluster_id: int, rows: Sequence[Row], samples: Sequence[Sample]) -> None:
    """Count the records that edges dropped, from telemetry rows, in the caller's transaction."""
    seconds = sum(sample["span_s"] for sample in samples)
    drops = list(Drop.objects.filter(cluster=cluster_id).only("stream_id", "query_id", "per_s"))
    if not drops or not seconds:
        return
    weight = 1 - math.exp(-seconds / PER_S_TAU)
    for drop in drops:
        lost = sum(row.get("dropped", {}).get(_name(drop), 0) for row in rows)
        per_s = drop.per_s + weight * (lost / seconds - drop.per_s)
        per_s = per_s if per_s > 1e-3 else 0.0  # noqa: PLR2004 - less than one in a quarter hour
        if lost or per_s != drop.per_s:
            Drop.objects.filter(pk=drop.pk).update(dropped=F("dropped") + lost, per_s=per_s)


def _name(drop: Drop) -> str:
    """Return what telemetry calls an edge."""
    stream, query = drop.edge
    return str(stream) if query == INPUT else f"{stream}>{query}"


def _note(cluster: Cluster, drop: Drop) -> None:
    head = tip_of(cluster, [drop.stream_id])
    newest = head.newest.get(drop.stream_id)
    if newest is None:
        return
    since = needed_since(drop.value, newest - _lateness_ms(drop))
    if since is not None:
        # A drop rule that was changed meanwhile is evaluated by the next call.
        same = Drop.objects.filter(pk=drop.pk, since_version=drop.since_version)
        same.update(settles={"since": since, "position": head.position})


def _lateness_ms(drop: Drop) -> int:
    """Return the largest lateness of the queries that get what the edge lets through."""
    readers = Query.objects.filter(streams=drop.stream_id, state__in=("running", "ending"))
    if drop.query_id is not None:
        readers = readers.filter(pk=drop.query_id)
    texts = readers.order_by().values_list("text", flat=True).distinct()
    lateness = (QueryText.from_json(json.loads(text)).lateness_s for text in texts)
    return round(max(lateness, default=0) * 1000)


def _has_processed(read: str, sample: Sample, position: str) -> bool:
    return (
        bool(read) and sample.get("waiting") == 0 and position_key(read) >= position_key(position)
    )


@retry_when_moved
def _forget(drop: Drop) -> int:
    cluster = Cluster.objects.get(pk=drop.cluster_id)
    row = Drop.objects.select_related("stream", "query").filter(pk=drop.pk).first()
    if row is None or row.settles is None:
        return 0
    left = remove_old_steps(row.value, row.settles["since"])
    stream, query = row.edge
    message = f"{edge_text(row)}: what it dropped before is forgotten"
    apply(cluster, [SetDropRule(stream, query, left)], TopologyChange(message))
    return 1
