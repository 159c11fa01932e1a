"""Ending queries that the data plane could not compute."""

from collections.abc import Mapping, Sequence
from typing import Any

from controlplane.models import Cluster, Query
from controlplane.services import audit
from controlplane.services.access import Automatic
from controlplane.services.events import announce, event
from controlplane.task_names import PLACE, send_on_commit

DATA_PLANE = Automatic("data plane")


def end_failed(cluster: Cluster, rows: Sequence[Mapping[str, Any]]) -> int:
    """End the queries of which telemetry rows tell a fault; returns how many were still running.

    A node tells its faults in every batch until the query has left, so hearing one again changes
    nothing, and neither does a fault of a query's earlier run.
    """
    faults = [fault for row in rows for fault in row.get("faults", ())]
    ended = 0
    for query, run, why in {(one["query"], one["run"], one["why"]) for one in faults}:
        mine = Query.objects.filter(pk=query, cluster=cluster, run=run)
        running = mine.filter(state=Query.State.RUNNING)
        if running.update(state=Query.State.ENDING, detail=why[:300]):
            _tell(cluster, Query.objects.get(pk=query), why)
            ended += 1
    if ended:
        send_on_commit(PLACE, cluster.pk)
    return ended


def _tell(cluster: Cluster, query: Query, why: str) -> None:
    audit.record(DATA_PLANE, "query.fail", query.name, cluster=cluster, reason=why)
    announce(cluster.pk, event("state", f"{query.name} failed: {why}", state="failed"))
