"""The number of nodes and the bounds of micro-batches over HTTP."""

from typing import Any

import pytest

from controlplane.access.roles import Actor
from controlplane.models import AuditEntry, Cluster
from controlplane.topology.rows import current_table
from tests.controlplane.api.callers import get, post, scripted

pytestmark = pytest.mark.django_db(transaction=True)
BASE = "/clusters/sf"


def test_nodes_are_added_while_the_cluster_runs(operator: Actor, sf: Cluster) -> None:
    Cluster.objects.update(desired="running", state="running")
    client = scripted(operator)
    before = len(get(client, f"{BASE}/nodes").json())
    answer = post(client, f"{BASE}/nodes", {"nodes": before + 2, "reason": "more load"})
    assert [node["index"] for node in answer.json()] == list(range(before + 2))
    assert get(client, BASE).json()["slots"] == before + 2
    assert current_table(sf.pk).node_count == before + 2
    assert AuditEntry.objects.get(action="cluster.nodes").reason == "more load"


def test_bounds_of_batches_are_set_one_or_both(operator: Actor, sf: Cluster) -> None:
    client = scripted(operator)
    answer = post(client, f"{BASE}/limits", {"max_batch_mb": 8, "reason": "wide records"}).json()
    assert (answer["max_records"], answer["max_batch_mb"]) == (200_000, 8)
    answer = post(client, f"{BASE}/limits", {"max_records": 5_000, "max_batch_mb": 9}).json()
    assert (answer["max_records"], answer["max_batch_mb"]) == (5_000, 9)
    first = AuditEntry.objects.filter(action="cluster.batch_limits").order_by("pk")[0]
    assert (first.before, first.after) == ({"max_batch_mb": 64}, {"max_batch_mb": 8})


@pytest.mark.parametrize(
    ("path", "body"),
    [("nodes", {"nodes": 0}), ("nodes", {"nodes": 1001}), ("limits", {"max_records": 10}),
     ("limits", {"max_batch_mb": 5000})],
)  # fmt: skip
def test_what_is_out_of_bounds_is_refused(
    operator: Actor, sf: Cluster, path: str, body: dict[str, Any]
) -> None:
    answer = post(scripted(operator), f"{BASE}/{path}", body)
    assert answer.status_code == 422
    sf.refresh_from_db()
    assert (sf.max_records, sf.max_batch_mb) == (200_000, 64)
