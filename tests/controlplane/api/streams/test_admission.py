"""Split nodes, characteristics, redirections, outlooks and what-if through the API."""

from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from controlplane.access.roles import Actor
from controlplane.models import AuditEntry, Cluster
from tests.controlplane.api.callers import JSON, ROOT, get, post, scripted
from tests.support.admission import arrived
from tests.support.partitions import with_partitions

pytestmark = pytest.mark.django_db(transaction=True)
BASE = "/clusters/sf"


@pytest.fixture
def client(operator: Actor, sf: Cluster) -> Client:
    return scripted(operator)


def put(client: Client, path: str, body: dict[str, Any]) -> Any:
    return client.put(f"{ROOT}{path}", body, content_type=JSON)


def test_split_nodes_have_a_declared_capacity(client: Client, sf: Cluster) -> None:
    body = {"capacity": 250, "emulated": True, "reason": "as the machines are"}
    rows = post(client, f"{BASE}/split-capacity", body).json()
    assert [row["capacity"] for row in rows] == [250.0] * sf.splits
    assert get(client, f"{BASE}/split-nodes").json() == rows
    cluster = get(client, BASE).json()
    assert (cluster["split_capacity"], cluster["split_emulated"]) == (250.0, True)
    refused = post(client, f"{BASE}/split-capacity", {"capacity": 0, "emulated": True})
    assert refused.status_code == 422


def test_characteristics_are_declared_whole(client: Client, sf: Cluster) -> None:
    """What is left out is not declared any more; a contradiction changes nothing."""
    stream = sf.streams.get(name="s0")
    path = f"{BASE}/streams/{stream.pk}/characteristics"
    answer = put(client, path, {"average": 4, "period_s": 60, "transition": "jump"})
    assert answer.json()["characteristics"] == {
        "average": 4.0, "period_s": 60.0, "transition": "jump",
    }  # fmt: skip
    put(client, path, {"maximum": 9, "reason": "measured in October"})
    refused = put(client, path, {"minimum": 9, "maximum": 3})
    assert refused.status_code == 422
    assert list(refused.json()["fields"]) == ["minimum"]
    stream.refresh_from_db()
    assert stream.characteristics == {"maximum": 9.0}
    entry = AuditEntry.objects.filter(action="streams.characteristics").latest("id")
    assert (entry.reason, entry.after) == ("measured in October", {"maximum": 9.0})


def test_a_stream_is_redirected_and_the_redirections_are_listed(
    client: Client, sf: Cluster
) -> None:
    stream = sf.streams.get(name="s0")
    target = 1 - stream.split
    path = f"{BASE}/streams/{stream.pk}"
    answer = post(client, f"{path}/redirect", {"split": target, "reason": "maintenance"})
    assert answer.json()["split"] == target
    (row,) = get(client, f"{path}/redirections").json()
    assert (row["source"], row["target"], row["reason"]) == (stream.split, target, "maintenance")
    assert row["partition"] is None
    assert post(client, f"{path}/redirect", {"split": 10_000}).status_code == 422


def test_a_partition_is_redirected_and_its_split_node_is_in_the_status(
    client: Client, sf: Cluster
) -> None:
    path = f"{BASE}/streams/s0"
    of_log = post(client, f"{path}/redirect", {"split": 1, "partition": 2})
    assert list(of_log.json()["fields"]) == ["partition"]
    stream = with_partitions(sf.streams.get(name="s0"), {0: 1.0, 1: 1.0, 2: 1.0})
    for split in (0, 1):
        answer = post(client, f"{path}/redirect", {"split": split, "partition": 2})
        assert answer.status_code == 200, answer.content
    partitions = get(client, f"{path}/topic").json()["partitions"]
    assert [row["split"] for row in partitions] == [stream.split, 1 - stream.split, 1]
    row, *_ = get(client, f"{path}/redirections").json()
    assert (row["partition"], row["source"], row["target"]) == (2, 0, 1)


def test_the_outlook_of_a_stream(client: Client, sf: Cluster) -> None:
    path = f"{BASE}/streams/{sf.streams.get(name='s0').pk}/outlook"
    assert get(client, path).json() is None
    arrived(sf, timezone.now(), {"s0": [30.0] * 20})
    outlook = get(client, path).json()
    assert outlook["forecast"][0] == 30.0
    assert (outlook["choice"]["method"], outlook["left"]) == ("holt", None)


def test_what_if_changes_nothing(client: Client, sf: Cluster) -> None:
    refused = post(client, f"{BASE}/streams/what-if", {"average": 5})
    assert (refused.status_code, refused.json()["code"]) == (409, "no_capacity")
    post(client, f"{BASE}/split-capacity", {"capacity": 100})
    streams = sf.streams.count()
    answer = post(client, f"{BASE}/streams/what-if", {"average": 5, "peak": 8}).json()
    assert answer["capacity"] == 100.0
    assert answer["split"] == answer["chosen"]["split"]
    assert sf.streams.count() == streams
    wrong = post(client, f"{BASE}/streams/what-if", {"average": 5, "peak": 2})
    assert list(wrong.json()["fields"]) == ["average"]
