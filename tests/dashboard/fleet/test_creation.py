"""Creation and import of clusters from the page of the fleet."""

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from controlplane.models import Cluster
from controlplane.policies.store import policy_of, update_policy
from tests.support.alerting import fleet_cluster
from tests.support.cluster import actor
from tests.support.kafka import running_kafka

pytestmark = [pytest.mark.django_db, pytest.mark.nightly("pages")]
VALUES = {"name": "Web requests, Asia", "slug": "", "slots": "8", "node_capacity": "1,500"}
DOCUMENT = """
weir: 1
cluster: {slug: sf, name: SF, slots: 2}
nodes:
- {index: 0, name: node 0}
- {index: 1, name: node 1}
"""


def test_an_admin_creates_a_cluster_with_the_policy_of_another(administering: Client) -> None:
    other = fleet_cluster("web")
    update_policy(actor("admin", "owner"), other, {"latency_ms": 2345})
    values = VALUES | {"policy_of": "web", "starts": "1"}
    answer = administering.post("/create/", values, HTTP_HX_REQUEST="true")
    assert answer["HX-Redirect"] == "/clusters/web-requests-asia/"
    cluster = Cluster.objects.get(slug="web-requests-asia")
    assert (cluster.desired, cluster.slots) == ("running", 8)
    assert {node.capacity for node in cluster.nodes.all()} == {1500.0}
    assert policy_of(cluster).latency_ms == 2345


def test_a_cluster_is_created_stopped_with_a_log_of_its_own(administering: Client) -> None:
    with running_kafka() as address:
        log = f"kafka://{address}/topic"
        values = VALUES | {"slug": "asia", "source": "url", "log_url": log}
        assert administering.post("/create/", values)["Location"] == "/clusters/asia/"
    cluster = Cluster.objects.get(slug="asia")
    assert (cluster.desired, cluster.log_url) == ("stopped", log)


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"name": ""}, "name"),
        ({"slug": "a b"}, "slug"),
        ({"slug": "web"}, "slug"),
        ({"slots": "none"}, "slots"),
        ({"slots": "1001"}, "slots"),
        ({"node_capacity": "much"}, "node_capacity"),
        ({"source": "url", "log_url": "http://x"}, "log_url"),
        ({"source": "url", "log_url": "redis://127.0.0.1:9/0"}, "log_url"),
        ({"policy_of": "unknown"}, "policy_of"),
    ],
)
def test_a_refused_cluster_has_its_faults_at_their_fields(
    administering: Client, changed: dict[str, str], field: str
) -> None:
    fleet_cluster("web")
    for headers in ({"HTTP_HX_REQUEST": "true"}, {}):
        answer = administering.post("/create/", VALUES | changed, **headers)  # type: ignore[arg-type]
        assert answer.status_code == 422
        assert field in answer.context["errors"]
        assert answer.context["values"]["node_capacity"] == (VALUES | changed)["node_capacity"]
    assert Cluster.objects.count() == 1


def test_an_import_shows_its_differences_before_it_is_applied(administering: Client) -> None:
    assert administering.get("/import/").status_code == 200
    checked = administering.post("/import/", {"text": DOCUMENT}, HTTP_HX_REQUEST="true")
    assert checked.context["report"].new
    assert [(row["part"], row["count"]) for row in checked.context["differences"]] == [("nodes", 2)]
    assert not Cluster.objects.exists()
    values = {"text": DOCUMENT, "checked": checked.context["checked"]}
    applied = administering.post("/import/", values, HTTP_HX_REQUEST="true")
    assert applied["HX-Redirect"] == "/clusters/sf/"
    assert Cluster.objects.get().nodes.count() == 2
    again = administering.post("/import/", {"text": DOCUMENT})
    assert not again.context["report"].changes


def test_a_text_that_was_changed_after_the_check_is_checked_again(administering: Client) -> None:
    checked = administering.post("/import/", {"text": DOCUMENT})
    values = {"text": DOCUMENT.replace("SF", "Other"), "checked": checked.context["checked"]}
    assert administering.post("/import/", values).context["report"].applied is False
    assert not Cluster.objects.exists()


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("", ""), ("weir: [", "line 2, column 1"),
        (DOCUMENT.replace("slots: 2", "slots: 1"), "nodes[1].index"),
        (DOCUMENT + "else: 1\n", "else"),
    ],
)  # fmt: skip
def test_faults_of_a_description_have_their_places(
    administering: Client, text: str, place: str
) -> None:
    file = SimpleUploadedFile("cluster.yaml", text.encode())
    sent = {"file": file} if text else {"text": text}
    answer = administering.post("/import/", sent, HTTP_HX_REQUEST="true")
    assert answer.status_code == 422
    assert place in [fault["place"] for fault in answer.context["faults"]]
    assert not Cluster.objects.exists()


def test_a_file_that_is_no_text_is_refused(administering: Client) -> None:
    file = SimpleUploadedFile("cluster.yaml", b"\xff\xfe\x00")
    assert administering.post("/import/", {"file": file}).status_code == 422


def test_the_example_of_the_page_is_a_cluster_with_a_running_query(administering: Client) -> None:
    page = administering.get("/import/")
    example = page.context["example"]
    checked = administering.post("/import/", {"text": example}, HTTP_HX_REQUEST="true")
    sent = {"text": example, "checked": checked.context["checked"]}
    answer = administering.post("/import/", sent, HTTP_HX_REQUEST="true")
    assert answer["HX-Redirect"] == "/clusters/orders/"
    cluster = Cluster.objects.get(slug="orders")
    assert [query.state for query in cluster.queries.all()] == ["running"]
