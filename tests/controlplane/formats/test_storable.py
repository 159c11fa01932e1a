"""What no database keeps is refused at the door, and what only looks like it is not."""

import json

import pytest
from django.contrib.auth.models import Group, User
from django.test import Client

from controlplane.access.roles import Actor
from controlplane.formats.storable import unstorable
from controlplane.models import Cluster, Stream
from tests.support.cluster import small_cluster

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.both_databases]

STREAMS = "/api/v1/clusters/sf/streams"


@pytest.fixture
def client(operator: Actor) -> Client:
    small_cluster(operator)
    user = User.objects.create_user("admin")
    user.groups.add(Group.objects.get_or_create(name="admin")[0])
    browser = Client()
    browser.force_login(user)
    return browser


def put_stream(client: Client, **more: object) -> int:
    schema = {"columns": [{"name": "metres", "type": "float64"}]}
    body = json.dumps({"streams": [{"name": "tide", "schema": schema} | more]})
    found = client.post(STREAMS, body, content_type="application/json")
    if found.status_code == 400:
        assert found["Content-Type"].startswith("application/problem+json")
    return found.status_code


@pytest.mark.parametrize(
    "more",
    [
        {"title": "a\0b"}, {"meta": {"deep": [{"x": "\0"}]}}, {"meta": {"\0": 1}},
        {"title": "\ud800"}, {"meta": {"x": float("nan")}}, {"meta": {"x": float("-inf")}},
    ],
)  # fmt: skip
def test_what_cannot_be_stored_is_refused(client: Client, more: dict[str, object]) -> None:
    assert put_stream(client, **more) == 400
    assert not Stream.objects.filter(name="tide").exists()


def test_what_looks_like_it_is_stored(client: Client) -> None:
    """Backslashes, pairs of surrogates, and words."""
    title = "\\u0000 \\ud800 NaN Infinity \U0001f30a"
    assert put_stream(client, title=title) == 200
    assert Stream.objects.get(name="tide").title == title


@pytest.mark.parametrize(
    "path",
    ["/api/v1/clusters/sf/queries/a%00b", "/api/v1/clusters/sf/queries?q=%00", "/clusters/s%00f/"],
)
def test_addresses_are_looked_at_too(client: Client, path: str) -> None:
    assert client.get(path).status_code == 400


def test_forms_are_looked_at_too(client: Client) -> None:
    found = client.post("/clusters/sf/stop/", "reason=a%00b",
                        content_type="application/x-www-form-urlencoded")  # fmt: skip
    assert found.status_code == 400
    assert Cluster.objects.get().desired == "stopped"


def test_places_are_named() -> None:
    value = {"a": [1, "x\0"], "b": float("inf"), "c": "fine"}
    assert [path for path, _ in unstorable(value)] == [("a", 1), ("b",)]
