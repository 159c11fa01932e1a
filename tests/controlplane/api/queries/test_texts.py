"""The API's doors for queries as text."""

import json
from typing import Any

import pytest
from django.test import Client

from controlplane.models import Cluster, Query
from controlplane.topology import placement
from tests.support.texts import SUMMARY_JSON
from tests.support.windows import write_windows

pytestmark = pytest.mark.django_db(transaction=True)
QUERIES = "/api/v1/clusters/sf/queries"
TEXT = {
    "where": "speed > 0",
    "columns": {"kmh": "speed * 0.036"},
    "key": ["stream", "car"],
    "aggregates": {"n": "count(*)", "fast": "max(kmh)", "last": "max(ts)"},
    "window_s": 300,
    "slide_s": 60,
}
GOOD = {"name": "q", "streams": ["s0", "s1"], "text": TEXT, "tasks": 4}
WHOLE = {"name": "whole", "streams": ["s0"], "text": SUMMARY_JSON}


def post(client: Client, path: str, body: Any) -> Any:
    return client.post(path, json.dumps(body), content_type="application/json")


def test_a_text_is_submitted_and_shown(script: Client, sf: Cluster) -> None:
    answer = post(script, QUERIES, GOOD)
    assert answer.status_code == 201, answer.content
    placement.place_pending(sf.pk)
    shown = script.get(f"{QUERIES}/q").json()
    assert shown["text"] == TEXT
    assert list(shown["text"]["aggregates"]) == ["n", "fast", "last"]
    assert (shown["tasks"], shown["window_s"]) == (4, 300.0)
    assert shown["task_ranges"] == [[0, 0, 1], [1, 1, 2], [2, 2, 3], [3, 3, 4]]
    answer = post(script, QUERIES, WHOLE).json()
    assert (answer["text"], answer["tasks"], answer["task_ranges"]) == (SUMMARY_JSON, 1, [])
    assert answer["window_s"] == 60.0


def test_faults_are_told_by_field_and_point_at_their_place(script: Client, sf: Cluster) -> None:
    wrong = TEXT | {"where": "spede > 0", "columns": {"kmh": "speed *"}, "key": []}
    answer = post(script, QUERIES, GOOD | {"text": wrong})
    assert answer.status_code == 422
    told = answer.json()
    assert sorted(told["fields"]) == [
        "tasks", "text.aggregates.fast", "text.columns.kmh", "text.where",
    ]  # fmt: skip
    assert told["fields"]["text.where"][0].startswith("There is no column spede")
    place = {"line": "spede > 0", "marks": "^^^^^", "character": 1}
    assert told["data"]["places"]["text.where"] == place
    assert "\n" not in told["detail"]
    assert not Query.objects.exists()


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"text": TEXT | {"slid_s": 3}}, "text.slid_s"),
        ({"text": TEXT | {"aggregates": ["count(*)"]}}, "text.aggregates"),
        ({"text": TEXT | {"window_s": "60"}}, "text.window_s"),
        ({"text": {}}, "text.aggregates"),
        ({"text": None}, "text"),
        ({"window_s": 60}, "window_s"),
        ({"value": "speed"}, "value"),
        ({"tasks": "4"}, "tasks"),
    ],
)
def test_a_body_of_another_shape_is_refused(
    script: Client, sf: Cluster, changed: dict[str, Any], field: str
) -> None:
    answer = post(script, QUERIES, GOOD | changed)
    assert answer.status_code == 422
    assert list(answer.json()["fields"]) == [field]


def test_a_bulk_request_tells_the_faults_of_each_row(script: Client, sf: Cluster) -> None:
    rows = [GOOD, WHOLE]
    assert post(script, f"{QUERIES}/bulk", {"queries": rows}).json()["count"] == 2
    wrong = [GOOD | {"name": "r", "text": {"aggregates": {"a": "mean(spede)"}}}]
    answer = post(script, f"{QUERIES}/bulk", {"queries": wrong}).json()
    assert answer["rows"]["0"]["text.aggregates.a"][0].startswith("There is no column spede")
    place = {"line": "mean(spede)", "marks": "     ^^^^^", "character": 6}
    assert answer["data"]["row_places"] == {"0": {"text.aggregates.a": place}}


def test_a_check_saves_nothing_and_tells_columns(script: Client, sf: Cluster) -> None:
    answer = post(script, f"{QUERIES}/check", {"text": TEXT, "tasks": 4}).json()
    assert answer["valid"]
    assert [(one["name"], one["kind"], one["role"]) for one in answer["columns"]] == [
        ("stream", "text", "key"), ("car", "int", "key"),
        ("n", "int", "aggregate"), ("fast", "float", "aggregate"), ("last", "time", "aggregate"),
    ]  # fmt: skip
    assert not Query.objects.exists()


def test_a_check_tells_faults_with_their_places(script: Client, sf: Cluster) -> None:
    body = {"name": "a/b", "streams": ["nowhere"], "text": TEXT | {"where": "speed > 0\nand spede"}}
    answer = post(script, f"{QUERIES}/check", body).json()
    assert not answer["valid"]
    assert list(answer["fields"]) == ["name", "streams", "text.where"]
    place = {"line": "and spede", "marks": "    ^^^^^", "character": 15}
    assert answer["places"] == {"text.where": place}
    assert answer["columns"] == []


def test_results_are_windows_by_key(script: Client, sf: Cluster) -> None:
    """Newest first, streams by name, moments as ISO 8601."""
    assert post(script, QUERIES, GOOD).status_code == 201
    query = Query.objects.get()
    s0 = sf.streams.get(name="s0").pk
    early = {"pane": 0, "stream": s0, "k0": s0, "k1": 7, "s0": 5, "s1": 36.0, "s2": 2000}
    rows = [early, early | {"pane": 60_000, "s1": float("nan")}]
    write_windows(query, 5, rows)
    late, first = script.get(f"{QUERIES}/q/results").json()["windows"]
    assert late["window_start"] == "1970-01-01T00:01:00Z"
    assert late["values"]["fast"] == "NaN"
    assert first.pop("changed_at")
    assert first == {
        "window_start": "1970-01-01T00:00:00Z",
        "key": {"stream": "s0", "car": 7},
        "values": {"n": 5, "fast": 36.0, "last": "1970-01-01T00:00:02Z"},
        "batch": 5,
        "state": "open",
        "errors": {},
        "kept": 1.0,
        "estimates": {},
    }
    page = script.get(f"{QUERIES}/q/results?limit=1")
    assert len(page.json()["windows"]) == 1
    assert page.json()["next"] in page["Link"]


def test_a_query_whose_function_is_gone_says_so(script: Client, sf: Cluster) -> None:
    """The modules of WEIR_FUNCTIONS may change while queries live."""
    assert post(script, QUERIES, GOOD).status_code == 201
    Query.objects.update(text='{"aggregates":{"n":"gone_by_now(speed)"}}')
    answer = script.get(f"{QUERIES}/q/results")
    assert (answer.status_code, answer.json()["code"]) == (409, "unreadable")
    assert "gone_by_now" in answer.json()["detail"]
