"""Drops, key groupings and aggregator nodes over HTTP."""

import json
from typing import Any

import pytest
from django.test import Client

from algorithms.partitioning.catalog import GROUPINGS
from controlplane.access.roles import Actor
from controlplane.models import Cluster
from controlplane.topology import placement
from tests.controlplane.api.callers import scripted
from tests.support.cluster import placed
from tests.support.records import append_at

pytestmark = pytest.mark.django_db(transaction=True)
BASE = "/api/v1/clusters/sf"
DROPS = f"{BASE}/streams/s0/drops"
MINUTE = 60_000


@pytest.fixture
def script(operator: Actor, sf: Cluster) -> Client:
    """A client with an operator's token; q reads s0 and s1, in windows of a minute."""
    placed(operator, sf, {"q": ["s0", "s1"]})
    return scripted(operator)


def send(client: Client, verb: str, path: str, body: Any) -> Any:
    return getattr(client, verb)(path, json.dumps(body), content_type="application/json")


def test_a_drop_is_set_shown_and_lifted(script: Client, sf: Cluster) -> None:
    assert script.get(DROPS).json() == []
    answer = send(script, "put", DROPS, {"share": 0.25, "reason": "too much"})
    assert answer.status_code == 200
    told = answer.json()
    assert (told["stream"], told["query"], told["share"]) == ("s0", None, 0.25)
    assert (told["window_s"], told["steps"]) == (None, [{"since": None, "share": 0.25}])
    assert (told["set_by"], told["reason"], told["dropped"]) == ("a-operator", "too much", 0)
    send(script, "put", DROPS, {"share": 1.0, "query": "q"})
    assert [one["query"] for one in script.get(DROPS).json()] == [None, "q"]
    assert script.delete(DROPS).json() == script.get(f"{DROPS}").json()
    assert [one["query"] for one in script.get(DROPS).json()] == ["q"]
    assert script.delete(f"{DROPS}?query=q").json() == []


def test_a_drop_of_windows_says_from_when_on(script: Client, sf: Cluster) -> None:
    pk = sf.streams.get(name="s0").pk
    append_at(sf, pk, 20 * MINUTE)
    body = {"share": 0.5, "window_s": 60.0, "query": "q"}
    told = send(script, "put", f"{BASE}/streams/{pk}/drops", body).json()
    assert told["steps"] == [{"since": "1970-01-01T00:21:00Z", "share": 0.5}]
    assert (told["window_s"], told["slide_s"], told["batch"]) == (60.0, 60.0, 1)
    append_at(sf, pk, 30 * MINUTE)
    (left,) = script.delete(f"{DROPS}?query=q&reason=quiet").json()
    assert (left["share"], left["reason"]) == (0.0, "quiet")
    assert left["steps"][-1] == {"since": "1970-01-01T00:31:00Z", "share": 0.0}


def test_streams_and_queries_show_their_drops(script: Client, sf: Cluster) -> None:
    send(script, "put", DROPS, {"share": 0.25})
    send(script, "put", DROPS, {"share": 0.5, "query": "q"})
    streams = {one["name"]: one for one in script.get(f"{BASE}/streams").json()["streams"]}
    assert [one["share"] for one in streams["s0"]["drops"]] == [0.25, 0.5]
    assert streams["s1"]["drops"] == []
    alone = script.get(f"{BASE}/streams/{streams['s0']['id']}").json()
    assert alone == streams["s0"], "a stream alone is told as in the list"
    (query,) = script.get(f"{BASE}/queries").json()["queries"]
    assert [(one["stream"], one["share"]) for one in query["drops"]] == [("s0", 0.5)]


def test_what_is_not_there_is_not_found(script: Client) -> None:
    assert script.get(f"{BASE}/streams/nowhere/drops").status_code == 404
    answer = send(script, "post", f"{BASE}/queries/ghost/key-grouping", {"key_grouping": "key"})
    assert answer.status_code == 404
    assert script.delete(DROPS).status_code == 422


def test_a_query_is_submitted_with_a_key_grouping_and_changes_it(
    script: Client, sf: Cluster
) -> None:
    text = {"aggregates": {"n": "count(*)"}, "key": ["car"]}
    body = {
        "name": "hot",
        "streams": ["s0"],
        "text": text,
        "tasks": 8,
        "key_grouping": "partial_key",
    }
    told = send(script, "post", f"{BASE}/queries", body).json()
    assert (told["key_grouping"], told["aggregator"]) == ("partial_key", None), "not placed yet"
    placement.place_pending(sf.pk)
    first = script.get(f"{BASE}/queries/hot").json()["aggregator"]
    assert first in range(4)
    told = send(script, "post", f"{BASE}/queries/hot/key-grouping", {"key_grouping": "key"}).json()
    assert told["key_grouping"] == "key"
    path = f"{BASE}/queries/hot/aggregator"
    assert send(script, "post", path, {"node": 3 - first}).json()["aggregator"] == 3 - first
    assert send(script, "post", path, {"node": None}).json()["aggregator"] != 3 - first
    answer = send(script, "post", path, {"node": 99})
    assert answer.json()["fields"] == {"node": ["There is no node 99"]}
    told = send(script, "post", f"{BASE}/queries/hot/tasks", {"tasks": 11, "reason": "more"}).json()
    assert (told["tasks"], told["task_ranges"][-1][2]) == (11, 11)
    answer = send(script, "post", f"{BASE}/queries/hot/tasks", {"tasks": 1})
    assert (answer.status_code, list(answer.json()["fields"])) == (422, ["tasks"])
    told = send(script, "post", f"{BASE}/queries/hot/aggregators", {"count": 2}).json()
    assert (told["aggregators"][0], len(told["aggregators"])) == (told["aggregator"], 2)
    answer = send(script, "post", f"{BASE}/queries/hot/aggregators", {"count": 5})
    assert (answer.status_code, list(answer.json()["fields"])) == (422, ["count"])
    answer = send(script, "post", f"{BASE}/queries/hot/key-grouping", {"key_grouping": "best"})
    assert "Must be one of" in answer.json()["fields"]["key_grouping"][0]


def test_parameters_of_a_key_grouping_are_submitted_shown_and_changed(
    script: Client, sf: Cluster
) -> None:
    text = {"aggregates": {"n": "count(*)"}, "key": ["car"]}
    body = {"name": "hot", "streams": ["s0"], "text": text, "tasks": 8}
    grouping = {"key_grouping": "random_choices", "key_grouping_parameters": {"eps": 0.05}}
    answer = send(script, "post", f"{BASE}/queries", body | grouping)
    assert answer.json()["key_grouping_parameters"] == {"eps": 0.05}
    placement.place_pending(sf.pk)
    path = f"{BASE}/queries/hot/key-grouping"
    changed = {"key_grouping": "random_choices",
               "key_grouping_parameters": {"eps": 0.05, "seed": 7, "weighted": False}}  # fmt: skip
    assert send(script, "post", path, changed).status_code == 200
    shown = script.get(f"{BASE}/queries/hot").json()
    assert {name: shown[name] for name in changed} == changed
    assert (
        send(script, "post", path, {"key_grouping": "key"}).json()["key_grouping_parameters"] == {}
    )
    wrong = grouping | {"key_grouping_parameters": {"eps": -1, "odd": 1}}
    for where, sent in ((path, wrong), (f"{BASE}/queries", body | wrong | {"name": "x"})):
        answer = send(script, "post", where, sent)
        assert answer.status_code == 422
        assert "key_grouping_parameters.odd" in answer.json()["fields"]
    assert send(script, "post", path, changed | {"key_grouping_parameters": [1]}).status_code == 422


def test_the_key_groupings_are_listed_with_their_parameters(client: Client, script: Client) -> None:
    rows = {row["name"]: row for row in script.get("/api/v1/key-groupings").json()}
    assert list(rows) == list(GROUPINGS)
    assert [name for name, row in rows.items() if row["by_key"]] == ["key"]
    assert rows["partial_key"]["title"] == GROUPINGS["partial_key"].title
    eps = next(item for item in rows["random_choices"]["parameters"] if item["name"] == "eps")
    assert (eps["type"], eps["default"], eps["minimum"]) == ("float", 0.01, 0.0)
    assert eps["help"]
