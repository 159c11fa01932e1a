"""The API's doors for schemas of streams."""

import json
from typing import Any, Final

import pytest
from django.test import Client

from controlplane.access.roles import Actor
from controlplane.models import AuditEntry, Cluster
from controlplane.queries.spec import QuerySpec
from controlplane.topology import queries
from controlplane.wire.query_text import QueryText
from tests.controlplane.api.callers import JSON, ROOT, get, post, scripted

pytestmark = pytest.mark.django_db(transaction=True)
STREAMS: Final = "/clusters/sf/streams"
# Measurements of rivers.
LEVELS: Final[dict[str, Any]] = {
    "columns": [
        {"name": "measured_at", "type": "timestamp(ms)", "nullable": False},
        {"name": "gauge", "type": "string", "nullable": False},
        {"name": "metres", "type": "float32", "nullable": True},
        {"name": "serial", "type": "uint64", "nullable": True},
        {"name": "place", "type": "struct<lat: float64, lon: float64>", "nullable": True},
    ],
    "event_time": "measured_at",
    "watermark_delay_s": 30.0,
    "max_future_s": 60.0,
    "idle_after_s": 10.0,
}


@pytest.fixture
def script(operator: Actor, sf: Cluster) -> Client:
    """A client with an operator's token, and a stream of levels."""
    client = scripted(operator)
    declared = {"streams": [{"name": "levels", "schema": LEVELS}]}
    assert post(client, STREAMS, declared).status_code == 200
    return client


def sent(client: Client, method: str, path: str, body: Any) -> Any:
    return getattr(client, method)(f"{ROOT}{path}", json.dumps(body), content_type=JSON)


def test_a_schema_is_read_as_it_was_declared(script: Client) -> None:
    """Alone, and its columns in the list of streams; a stream that is not there is 404."""
    assert get(script, f"{STREAMS}/levels/schema").json() == LEVELS
    (row,) = get(script, f"{STREAMS}?q=levels").json()["streams"]
    assert row["columns"] == LEVELS["columns"]
    assert (row["event_time"], row["dead_letters"]) == ("measured_at", {})
    assert get(script, f"{STREAMS}/nothing/schema").status_code == 404


def test_a_schema_is_changed_whole_or_in_parts(script: Client) -> None:
    """PUT and PATCH follow the same rules, and are audited with their reason."""
    wider = {**LEVELS, "watermark_delay_s": 5}
    answer = sent(script, "put", f"{STREAMS}/levels/schema", wider | {"reason": "slow gauges"})
    assert answer.status_code == 200, answer.content
    assert answer.json()["watermark_delay_s"] == 5
    patch = {"columns": [{"name": "metres", "type": "float64"}], "remove": ["place"]}
    answer = sent(script, "patch", f"{STREAMS}/levels/schema", patch)
    types = {column["name"]: column["type"] for column in answer.json()["columns"]}
    assert types == {
        "measured_at": "timestamp(ms)", "gauge": "string", "metres": "float64", "serial": "uint64",
    }  # fmt: skip
    assert AuditEntry.objects.filter(action="stream.schema").count() == 2


def test_a_refused_change_is_409_with_columns_and_queries(
    script: Client, operator: Actor, sf: Cluster
) -> None:
    """The preview says the same without trying."""
    text = QueryText({"high": "max(metres)"}, key=("gauge",))
    queries.submit(operator, sf, QuerySpec("floods", ("levels",), text=text))
    columns = [column for column in LEVELS["columns"] if column["name"] != "metres"]
    columns[1] = {"name": "gauge", "type": "int32"}
    body = LEVELS | {"columns": columns}
    seen = post(script, f"{STREAMS}/levels/schema/preview", body).json()
    assert seen["allowed"] is False
    answer = sent(script, "put", f"{STREAMS}/levels/schema", body)
    assert (answer.status_code, answer.json()["code"]) == (409, "schema_incompatible")
    refused = answer.json()["data"]["columns"]
    assert {one["column"]: one["queries"] for one in refused} == {
        "gauge": ["floods"], "metres": ["floods"],
    }  # fmt: skip
    assert "floods" in answer.json()["detail"]
    assert [one for one in seen["changes"] if one["reason"]] == refused
    assert get(script, f"{STREAMS}/levels/schema").json() == LEVELS


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"columns": [{"name": "straße", "type": "string"}]}, "columns.straße"),
        ({"columns": [{"name": "a", "type": "text"}]}, "columns.a"),
        ({"columns": [{"name": "a", "type": "int8"}], "event_time": "a"}, "event_time"),
        ({"columns": [{"name": "a", "type": "int8"}], "max_future_s": -1}, "max_future_s"),
        ({"columns": []}, "columns"),
        ({"columns": [{"name": "a", "type": "int8", "key": True}]}, "columns.0.key"),
    ],
)
def test_a_schema_that_cannot_be_is_422_by_field(
    script: Client, body: dict[str, Any], field: str
) -> None:
    """With what is allowed."""
    answer = sent(script, "put", f"{STREAMS}/levels/schema", body)
    assert answer.status_code == 422
    assert field in answer.json()["fields"], answer.json()


def test_a_sample_suggests_a_schema_that_can_be_declared(script: Client) -> None:
    """What comes back is what goes in, with notes beside it."""
    sample = "measured_at,gauge,metres\n2024-01-01T00:00:00Z,Köln,1.5\n2024-01-01T00:01:00Z,Bonn,\n"
    answer = script.post(f"{ROOT}{STREAMS}/infer", sample, content_type="text/csv")
    assert answer.status_code == 200, answer.content
    found = answer.json()
    assert (found["format"], found["records"], found["event_time"]) == ("csv", 2, "measured_at")
    names = ("name", "type", "nullable")
    columns = [{name: one[name] for name in names} for one in found["columns"]]
    declared = {"columns": columns, "event_time": found["event_time"]}
    body = {"streams": [{"name": "rhine", "schema": declared}]}
    assert post(script, STREAMS, body).status_code == 200
    records = f"{ROOT}{STREAMS}/rhine/records"
    assert script.post(records, sample, content_type="text/csv").json()["records"] == 2
    broken = script.post(f"{ROOT}{STREAMS}/infer", "[1]", content_type=JSON)
    assert (broken.status_code, list(broken.json()["fields"])) == (422, ["sample"])
    assert script.post(f"{ROOT}{STREAMS}/infer", "x", content_type="text/plain").status_code == 415
