"""The late nodes of a demonstration against the real API, called in process."""

import httpx
import pytest
import redis

from controlplane.models import AuditEntry, Cluster, Node, Query
from tests.workers.demo.test_keeper import MOUSE
from workers.demo.keeper import LateNodes, WeirApi
from workers.demo.recording import REPORT

pytestmark = pytest.mark.django_db


@pytest.fixture
def node(cluster: Cluster) -> Node:
    """An inactive node beside an active one."""
    Node.objects.create(cluster=cluster, index=0, name="node 0", capacity=10.0)
    return Node.objects.create(cluster=cluster, index=3, name="node 3", capacity=10.0, active=False)


def test_it_joins_once_when_all_queries_are_placed(
    api: WeirApi,
    node: Node,
    redis_client: "redis.Redis",
) -> None:
    late_nodes = LateNodes(api, redis_client, "sf", [node.index])
    api.register([{"name": name, "schema": REPORT.to_json()} for name in MOUSE.streams])
    api.submit([MOUSE])
    late_nodes.step()
    assert not Node.objects.get(pk=node.pk).active, "a query waits for its placement"
    Query.objects.update(state="running")
    late_nodes.step()
    assert Node.objects.get(pk=node.pk).active
    assert AuditEntry.objects.get(action="node.change").reason == "the cluster grows"
    Node.objects.filter(pk=node.pk).update(active=False)
    late_nodes.step()
    LateNodes(api, redis_client, "sf", [node.index]).step()
    assert not Node.objects.get(pk=node.pk).active, "an operator deactivated it"


def test_it_is_tried_again_while_weir_is_away(node: Node, redis_client: "redis.Redis") -> None:
    def away(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("away", request=request)

    with httpx.Client(transport=httpx.MockTransport(away), base_url="http://weir.test") as http:
        late_nodes = LateNodes(WeirApi(http, "sf"), redis_client, "sf", [node.index])
        with pytest.raises(httpx.ConnectError):
            late_nodes.step()
    assert not Node.objects.get(pk=node.pk).active
