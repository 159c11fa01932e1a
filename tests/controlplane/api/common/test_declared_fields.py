"""Fields of the OpenAPI document: times outside of the calendar, and empty selections."""

import json
from collections.abc import Iterator
from typing import Any, Final

import pytest
from django.apps import apps
from django.db import transaction
from django.test import Client

from controlplane.connections import redis_client
from controlplane.models import Cluster, Query, Stream
from controlplane.wire import dead_letters
from controlplane.wire.dead_letters import DeadLetter, Reason
from tests.controlplane.api.callers import JSON, get, scripted
from tests.controlplane.api.generated_requests import operations, places, replaced, schema_at
from tests.support.api_world import address_of, rich_cluster
from tests.support.cluster import actor

pytestmark = pytest.mark.nightly("requests")

BEYOND: Final = ("9999-12-31T23:59:59-05:00", "0001-01-01T00:00:00+05:00")
IN_CALENDAR: Final = ("9999-12-31T23:59:59Z", "0001-01-01T00:00:00Z")
# Filters and ranges that read their times themselves, by the parameter.
READ: Final = {
    "/clusters/sf/queries": ("filter", "submitted>{}"),
    "/clusters/sf/queries/q/results": ("from", "{}"),
    "/audit": ("filter", "at<{}"),
}


@pytest.fixture
def world(db: None, redis_url: str) -> Cluster:
    """A cluster with a row of every kind, and three dead letters."""
    cluster = rich_cluster(actor("operator"))
    stream = Stream.objects.get(cluster=cluster, name="s0")
    letters = [DeadLetter(stream.pk, "17-1", i, Reason.BODY, "x", b"{}") for i in range(3)]
    dead_letters.keep(redis_client(), cluster.slug, letters)
    return cluster


@pytest.fixture
def script(world: Cluster) -> Client:
    """The script of an admin."""
    return scripted(actor("admin", "the-admin"))


def send(script: Client, method: str, path: str, body: Any = None) -> Any:
    """Return the answer to a request, whose effects are reverted unless it deletes."""
    sent = b"" if body is None else json.dumps(body).encode()
    return script.generic(method.upper(), path, sent, content_type=JSON)


def times(cluster: Cluster, moment: str) -> Iterator[tuple[str, str, str, Any]]:
    """Yield a request for each declared time: its method, its path, the field, and its body."""
    for row in operations():
        path = address_of(row.path, cluster)
        for name in row.names("query"):
            if any(kind.get("format") == "date-time" for kind in options(row.schemas[name])):
                yield row.method, f"{path}?{name}={moment.replace('+', '%2B')}", name, None
        for body in row.bodies:
            for place in places(body):
                schema = schema_at(row.body_schema, place)
                if any(kind.get("format") == "date-time" for kind in options(schema)):
                    yield row.method, path, str(place[-1]), replaced(body, place, moment)


def options(schema: Any) -> list[Any]:
    return [schema, *schema.get("anyOf", ())]


@pytest.mark.parametrize("moment", BEYOND)
def test_a_time_outside_of_the_calendar_is_refused_by_field(
    script: Client, world: Cluster, moment: str
) -> None:
    asked = list(times(world, moment))
    assert {"ends_at", "starts_at", "expires_at", "start", "end", "stop", "at", "time"} <= {
        name for _, _, name, _ in asked
    }
    for method, path, name, body in asked:
        answer = send(script, method, path, body)
        fields = answer.json()["fields"]
        assert answer.status_code == 422, (method, path, body)
        assert any(place.split(".")[-1] == name for place in fields), (path, fields)
    for path, (name, text) in READ.items():
        value = text.format(moment).replace("+", "%2B")
        answer = get(script, f"{path}?{name}={value}")
        assert (answer.status_code, list(answer.json()["fields"])) == (422, [name])


@pytest.mark.parametrize("moment", IN_CALENDAR)
def test_a_time_at_an_end_of_the_calendar_is_read(
    script: Client, world: Cluster, moment: str
) -> None:
    """What is before or after it may be outside."""
    for method, path, _, body in times(world, moment):
        with transaction.atomic():
            assert send(script, method, path, body).status_code < 500, (path, body)
            transaction.set_rollback(True)
    for path, (name, text) in READ.items():
        assert get(script, f"{path}?{name}={text.format(moment)}").status_code == 200


def state(cluster: Cluster) -> tuple[dict[str, set[Any]], list[tuple[int, str]], int]:
    """Return the ids of all rows by model, the states of queries, and the dead letters."""
    models = apps.get_app_config("controlplane").get_models()
    rows = {model.__name__: set(model._default_manager.values_list("pk", flat=True))
            for model in models}  # fmt: skip
    letters = dead_letters.newest(redis_client(), cluster.slug, before=0, limit=10)
    return rows, list(Query.objects.order_by("pk").values_list("pk", "state")), len(letters)


def test_a_whole_number_that_no_column_has_is_refused(script: Client, world: Cluster) -> None:
    body = {"sequence": 2**63, "hash": "0f"}
    answer = script.post("/api/v1/audit/verify", body, content_type="application/json")
    assert answer.status_code == 422
    largest = 2**63 - 1
    text = f"Input should be between -{largest} and {largest}"
    assert answer.json()["fields"] == {"sequence": [text]}


def test_an_empty_list_selects_nothing(script: Client, world: Cluster) -> None:
    """Of every list of a body: no row is gone, no query ends, no dead letter is deleted."""
    tried = set()
    before, queries, letters = state(world)
    for row in operations():
        for body in row.bodies:
            for place in places(body):
                kinds = options(schema_at(row.body_schema, place))
                if place and any(kind.get("type") == "array" for kind in kinds):
                    tried.add(f"{row.name} {'.'.join(map(str, place))}")
                    path = address_of(row.path, world)
                    with transaction.atomic():
                        answer = send(script, row.method, path, replaced(body, place, []))
                        rows, states, left = state(world)
                        transaction.set_rollback(True)
                    assert answer.status_code < 500, row.name
                    assert not {name for name, ids in before.items() if ids - rows[name]}
                    assert (states[: len(queries)], left) == (queries, letters), (row.name, place)
    assert "POST /api/v1/clusters/{slug}/dead-letters/delete ids" in tried
    assert "POST /api/v1/clusters/{slug}/queries/end names" in tried
    assert len(tried) > 20


def test_an_empty_name_of_a_query_is_no_input_of_a_stream(script: Client, world: Cluster) -> None:
    """Without a query the rule is that of the input: an empty text is not left out."""
    path = "/api/v1/clusters/sf/streams/s0/drops"
    assert send(script, "put", path, {"share": 0.5, "query": ""}).status_code == 422
    assert send(script, "put", path, {"share": 0.5}).status_code == 200
    assert send(script, "delete", f"{path}?query=").status_code == 422
    assert len(get(script, path.removeprefix("/api/v1")).json()) == 1
    ended = send(script, "post", "/api/v1/clusters/sf/queries/end-matching",
                 {"filter": " ", "confirmed": 10**9})  # fmt: skip
    assert (ended.status_code, list(ended.json()["fields"])) == (422, ["filter"])
