"""Failed queries: the data plane reports a fault, and the query ends."""

from collections.abc import Mapping, Sequence
from typing import Any

from algorithms.strict_json import read_bounded
from controlplane.access import audit
from controlplane.access.roles import Automatic
from controlplane.events.publish import announce, event
from controlplane.events.task_names import PLACE, send_on_commit
from controlplane.models import Cluster, Query

DATA_PLANE = Automatic("data plane")


def end_failed(cluster: Cluster, rows: Sequence[Mapping[str, Any]]) -> int:
    """End the queries with faults in telemetry rows; return how many were running.

    A node reports its faults in every batch until the query has left, so a repeated fault changes
    nothing, and neither does a fault of an earlier incarnation of the query.
    """
    faults: dict[tuple[int, int], Mapping[str, Any]] = {}
    for fault in (fault for row in rows for fault in row.get("faults", ())):
        known = faults.setdefault((fault["query"], fault["run"]), fault)
        # The report of one of several nodes or batches may lack the sample.
        if not known["sample"]:
            faults[fault["query"], fault["run"]] = fault
    ended = 0
    for (query, incarnation), fault in faults.items():
        queries = Query.objects.filter(pk=query, cluster=cluster, incarnation=incarnation)
        running = queries.filter(state=Query.State.RUNNING)
        why = fault["why"]
        if running.update(state=Query.State.ENDING, detail=why[:300], fault=_fault_json(fault)):
            name = Query.objects.values_list("name", flat=True).get(pk=query)
            audit.record(DATA_PLANE, "query.fail", name, cluster=cluster, reason=why)
            announce(cluster.pk, event("state", f"{name} failed: {why}", state="failed"))
            ended += 1
    if ended:
        send_on_commit(PLACE, cluster.pk)
    return ended


def _fault_json(fault: Mapping[str, Any]) -> dict[str, Any]:
    """Return the stored fields of a fault; a sample that is not JSON is stored as text."""
    sample: str = fault["sample"] or "[]"
    try:
        rows = read_bounded(sample.encode("utf-8", "replace"))
    except ValueError:
        rows = [sample]
    return {
        "why": fault["why"],
        "stage": fault["stage"],
        "node": fault["node"],
        "sample": rows,
    }
