"""The number of nodes and the limits of micro-batches, changed on the page of a cluster."""

from collections.abc import Iterable

import pytest
from django.contrib.messages import get_messages
from django.test import Client

from controlplane.models import AuditEntry, Cluster, Node

pytestmark = pytest.mark.nightly("pages")

NODES = "/clusters/sf/nodes/"
LIMITS = "/clusters/sf/limits/"
SMALL = {"max_records": "50,000", "max_batch_mb": "16"}
HTMX = {"HX-Request": "true"}


def limits(cluster: Cluster) -> tuple[int, int]:
    cluster.refresh_from_db()
    return cluster.max_records, cluster.max_batch_mb


def fault_at(content: str, field: str) -> str:
    """Return what the form says of a field."""
    found = content[content.index(f'id="faults-{field}"') :]
    return found[found.index(">") + 1 : found.index("</p>")]


def test_nodes_are_added(operating: Client, sf: Cluster) -> None:
    Node.objects.filter(index=3).update(capacity=300.0)
    answer = operating.post(NODES, {"nodes": "6", "reason": "a busier season"}, headers=HTMX)
    assert answer["HX-Redirect"] == "/clusters/sf/"
    sf.refresh_from_db()
    assert sf.slots == 6
    assert list(sf.nodes.order_by("index").values_list("capacity", flat=True)[4:]) == [300.0, 300.0]
    assert AuditEntry.objects.get(action="cluster.nodes").reason == "a busier season"
    assert f"{sf.name} has 6 nodes." in operating.get("/clusters/sf/").content.decode()


@pytest.mark.parametrize(
    ("nodes", "fault"),
    [
        ("", "Enter a whole number."),
        ("2.5", "Enter a whole number."),
        ("0", "Must be from 1 to 1000."),
        ("1001", "Must be from 1 to 1000."),
        ("3", "node 3 would be removed: set them inactive first."),
    ],
)
def test_a_refused_number_of_nodes_is_told_at_its_field(
    operating: Client, sf: Cluster, nodes: str, fault: str
) -> None:
    answer = operating.post(NODES, {"nodes": nodes, "reason": "why"}, headers=HTMX)
    content = answer.content.decode()
    assert (answer.status_code, fault_at(content, "nodes")) == (422, fault)
    assert f'required value="{nodes}"' in content
    assert 'value="why"' in content
    sf.refresh_from_db()
    assert sf.slots == 4


def test_limits_are_changed(operating: Client, sf: Cluster) -> None:
    answer = operating.post(LIMITS, SMALL | {"reason": "long texts"})
    assert answer["Location"] == "/clusters/sf/"
    assert limits(sf) == (50_000, 16)
    entry = AuditEntry.objects.get(action="cluster.batch_limits")
    assert (entry.reason, entry.before["max_batch_mb"]) == ("long texts", 64)
    content = operating.get("/clusters/sf/").content.decode()
    assert "has at most 50,000 records and 16 MiB." in content
    assert 'required value="50000"' in content


@pytest.mark.parametrize(
    ("values", "field", "fault"),
    [
        ({"max_records": "999"}, "max_records", "greater than or equal to 1000."),
        ({"max_records": "all"}, "max_records", "Enter a whole number."),
        ({"max_batch_mb": "2000"}, "max_batch_mb", "less than or equal to 1024."),
        ({"max_batch_mb": ""}, "max_batch_mb", "Enter a whole number."),
    ],
)
def test_a_refused_limit_is_told_at_its_field(
    operating: Client, sf: Cluster, values: dict[str, str], field: str, fault: str
) -> None:
    before = limits(sf)
    answer = operating.post(LIMITS, SMALL | values, headers=HTMX)
    assert answer.status_code == 422
    content = answer.content.decode()
    assert fault_at(content, field).endswith(fault)
    assert not fault_at(content, field).endswith("..")
    others = {"max_records", "max_batch_mb"} - {field}
    assert [fault_at(content, other) for other in others] == [""]
    assert limits(sf) == before


def test_without_htmx_the_page_shows_the_refusal(operating: Client, sf: Cluster) -> None:
    answer = operating.post(NODES, {"nodes": "0"})
    told: Iterable[object] = get_messages(answer.wsgi_request)
    assert answer["Location"] == "/clusters/sf/"
    assert [str(message) for message in told] == ["Must be from 1 to 1000."]
