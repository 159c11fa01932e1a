"""The API's doors for joins: sides by name on the way in and out."""

import json
from typing import Any

import pytest
from django.test import Client

from controlplane.access.roles import Actor
from controlplane.api.common.examples import ORDERS_SCHEMA, QUERY_EXAMPLES
from controlplane.models import Cluster, Query
from controlplane.topology import placement, streams
from controlplane.topology.streams import StreamSpec
from tests.controlplane.api.queries.test_texts import QUERIES, post
from tests.support.texts import SUMMARY_JSON
from tests.support.windows import write_windows

pytestmark = pytest.mark.django_db(transaction=True)
TEXT = {
    "right": ["s3", "s2"],
    "on": [["car", "car"], ["x // 100", "x // 100"]],
    "key": ["a.car", "b.stream"],
    "aggregates": {"n": "count(*)", "faster": "mean(b.speed - a.speed)"},
    "window_s": 300,
}
GOOD = {"name": "q", "streams": ["s1", "s0"], "text": TEXT, "tasks": 4}


def test_what_was_submitted_is_read_back(script: Client, sf: Cluster) -> None:
    """Names on both sides; a reading posted again under another name is the same query."""
    answer = post(script, QUERIES, GOOD)
    assert answer.status_code == 201, answer.content
    placement.place_pending(sf.pk)
    shown = script.get(f"{QUERIES}/q").json()
    assert shown["streams"] == ["s0", "s1"]
    assert shown["text"] == TEXT | {"right": ["s2", "s3"]}
    again = {name: shown[name] for name in ("streams", "text", "tasks")} | {"name": "r"}
    assert post(script, QUERIES, again).status_code == 201
    (listed, other) = script.get(QUERIES).json()["queries"]
    assert (listed["streams"], listed["text"]) == (other["streams"], other["text"])


def test_a_bulk_request_may_hold_joins(script: Client, sf: Cluster) -> None:
    rows = [GOOD, {"name": "whole", "streams": ["s0"], "text": SUMMARY_JSON}]
    assert post(script, f"{QUERIES}/bulk", {"queries": rows}).json()["count"] == 2
    wrong = GOOD | {"name": "r", "text": TEXT | {"right": ["s1"], "on": [["car"]]}}
    told = post(script, f"{QUERIES}/bulk", {"queries": [wrong]}).json()["rows"]["0"]
    assert sorted(told) == ["text.on.0", "text.right"]


def test_faults_are_told_by_field_and_point_at_their_place(script: Client, sf: Cluster) -> None:
    wrong = TEXT | {"on": [["car", "cab"]], "aggregates": {"n": "mean(speed)"}}
    answer = post(script, QUERIES, GOOD | {"text": wrong, "streams": ["s2"]})
    assert answer.status_code == 422
    told = answer.json()
    assert sorted(told["fields"]) == ["text.aggregates.n", "text.on.0", "text.right"]
    place = {"line": "cab", "marks": "^^^", "character": 1}
    assert told["data"]["places"]["text.on.0"] == place
    assert told["data"]["places"]["text.aggregates.n"]["marks"] == "     ^^^^^"
    assert not Query.objects.exists()


@pytest.mark.parametrize(
    ("changed", "field"),
    [({"right": "s2"}, "text.right"), ({"on": "car"}, "text.on"), ({"on": ["car"]}, "text.on.0")],
)
def test_a_body_of_another_shape_is_refused(
    script: Client, sf: Cluster, changed: dict[str, Any], field: str
) -> None:
    answer = post(script, QUERIES, GOOD | {"text": TEXT | changed})
    assert (answer.status_code, list(answer.json()["fields"])) == (422, [field])


def test_a_check_tells_the_columns_to_use_and_those_of_the_results(
    script: Client, sf: Cluster
) -> None:
    """Also before there is a left side."""
    answer = post(script, f"{QUERIES}/check", {"text": TEXT, "tasks": 4}).json()
    assert answer["valid"]
    assert [(one["name"], one["kind"], one["role"]) for one in answer["columns"]] == [
        ("a.car", "int", "key"), ("b.stream", "text", "key"),
        ("n", "int", "aggregate"), ("faster", "float", "aggregate"),
    ]  # fmt: skip
    assert answer["usable"]["a.ts"] == answer["usable"]["b.ts"] == "time"
    assert len(answer["usable"]) == 12
    alone = post(script, f"{QUERIES}/check", {"text": TEXT | {"right": [], "on": []}}).json()
    assert "speed" in alone["usable"]
    assert not Query.objects.exists()


def test_results_name_the_streams_of_both_sides(script: Client, sf: Cluster) -> None:
    assert post(script, QUERIES, GOOD).status_code == 201
    s3 = sf.streams.get(name="s3").pk
    write_windows(Query.objects.get(), 5, [{"k0": 7, "k1": s3, "s0": 2, "s1": 1, "s2": 36}])
    (window,) = script.get(f"{QUERIES}/q/results").json()["windows"]
    assert window["key"] == {"a.car": 7, "b.stream": "s3"}


def test_the_documented_bodies_are_taken(script: Client, operator: Actor, sf: Cluster) -> None:
    """Those that the OpenAPI document shows, under the operations that take them."""
    streams.register(
        operator,
        sf,
        [StreamSpec(name, schema=dict(ORDERS_SCHEMA)) for name in ("orders-north", "orders-south")],
    )
    reader = Client()
    reader.force_login(operator.user)  # type: ignore[arg-type]
    document = reader.get("/api/v1/openapi.json").json()
    shown = {}
    for path in ("queries", "queries/check", "queries/bulk"):
        operation = document["paths"][f"/api/v1/clusters/{{slug}}/{path}"]["post"]
        body = operation["requestBody"]["content"]["application/json"]
        assert "$ref" in body["schema"]
        shown[path] = body["examples"]
    assert [one["value"] for one in shown["queries"].values()] == list(QUERY_EXAMPLES.values())
    for path, examples in shown.items():
        for example in examples.values():
            answer = post(script, f"/api/v1/clusters/sf/{path}", example["value"])
            assert answer.status_code == (200 if path.endswith("check") else 201), answer.content
            Query.objects.all().delete()
    assert any("right" in json.dumps(one) for one in shown["queries"].values())
