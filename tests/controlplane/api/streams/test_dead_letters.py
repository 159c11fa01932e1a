"""Records that do not fit: kept as dead letters, listed, exported, appended again, given up."""

import json
import time
from typing import Any, Final

import pyarrow as pa
import pytest
from django.test import Client

from controlplane.access.roles import Actor
from controlplane.connections import redis_client
from controlplane.models import AuditEntry, Cluster, Stream
from controlplane.records import dead_letters as service
from controlplane.wire import dead_letters
from controlplane.wire.dead_letters import DeadLetter, Reason
from controlplane.wire.log.values import START, Log, LogPosition
from controlplane.wire.records.record_codec import decode_block, encode_block
from tests.controlplane.api.callers import JSON, ROOT, get, post, scripted

pytestmark = pytest.mark.django_db(transaction=True)
BASE: Final = "/clusters/sf"
# Visits to pages.
VISITS: Final[dict[str, Any]] = {
    "columns": [
        {"name": "at", "type": "timestamp(ms)", "nullable": False},
        {"name": "page", "type": "string", "nullable": False},
        {"name": "ms", "type": "int8", "nullable": True},
    ],
    "event_time": "at",
}
GOOD: Final = {"at": 1_700_000_000_000, "page": "/", "ms": 5}
LONG: Final = GOOD | {"page": "/slow", "ms": 300}


@pytest.fixture
def script(operator: Actor, sf: Cluster) -> Client:
    """A client with an operator's token, and a stream of visits."""
    client = scripted(operator)
    post(client, f"{BASE}/streams", {"streams": [{"name": "visits", "schema": VISITS}]})
    return client


def append(client: Client, rows: Any, query: str = "?on_bad=dead_letter", kind: str = JSON) -> Any:
    body = rows if isinstance(rows, str) else json.dumps(rows)
    return client.post(f"{ROOT}{BASE}/streams/visits/records{query}", body, content_type=kind)


def listed(client: Client, query: str = "") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = get(client, f"{BASE}/dead-letters{query}").json()["dead_letters"]
    return found


def appended(log: Log) -> list[dict[str, Any]]:
    stream = Stream.objects.get(name="visits").pk
    end = log.position_after(LogPosition(START, 0), 10**9)
    entries = log.read_streams([stream], START, end.position).get(stream, [])
    return [row for entry in entries for row in decode_block(entry.block).records.to_pylist()]


def test_the_good_records_are_appended_and_the_others_kept(script: Client, log: Log) -> None:
    """The answer counts both; each bad one says why, and from where in which request."""
    answer = append(script, [GOOD, LONG, "x", GOOD])
    assert answer.status_code == 201
    assert (answer.json()["records"], answer.json()["dead_letters"]) == (2, 2)
    assert [row["ms"] for row in appended(log)] == [5, 5]
    second, first = listed(script)
    assert (first["stream"], first["index"], first["reason"]) == ("visits", 1, "body")
    assert "ms: Must be a whole number from -128 to 127, not 300" in first["message"]
    assert json.loads(first["record"]) == LONG
    assert (second["index"], second["record"]) == (2, "x")
    (row,) = get(script, f"{BASE}/streams?q=visits").json()["streams"]
    assert row["dead_letters"] == {"body": 2}


def test_without_it_a_bad_record_refuses_them_all(script: Client, log: Log) -> None:
    """As it always was; and nothing is kept."""
    for query in ("", "?on_bad=reject"):
        answer = append(script, [GOOD, LONG], query)
        assert answer.status_code == 422
        assert list(answer.json()["rows"]) == ["1"]
    assert append(script, [GOOD], "?on_bad=maybe").status_code == 422
    assert appended(log) == []
    assert listed(script) == []


def test_a_repeated_request_keeps_its_dead_letters_once(script: Client, log: Log) -> None:
    """Under its stamp; without one, two requests are two."""
    stamped = "?on_bad=dead_letter&producer=loader&sequence=7"
    for _ in range(3):
        assert append(script, [GOOD, LONG], stamped).json()["dead_letters"] == 1
    assert len(listed(script)) == len(appended(log)) == 1
    for _ in range(2):
        append(script, [LONG])
    assert len(listed(script)) == 3
    (row,) = get(script, f"{BASE}/streams?q=visits").json()["streams"]
    assert row["dead_letters"] == {"body": 3}
    assert len(appended(log)) == 1


def test_a_request_that_is_wrong_altogether_is_refused(script: Client, log: Log) -> None:
    """More bad records than are kept of a request are not cut, but refused with the good ones."""
    answer = append(script, [GOOD] + [LONG] * (service.MAX_BAD + 1))
    assert answer.status_code == 422
    assert "nothing was appended" in answer.json()["detail"]
    assert (appended(log), listed(script)) == ([], [])


def widen(client: Client) -> None:
    patch = {"columns": [{"name": "ms", "type": "int16"}]}
    path = f"{ROOT}{BASE}/streams/visits/schema"
    assert client.patch(path, json.dumps(patch), content_type=JSON).status_code == 200


def test_what_fits_the_present_schema_is_appended_again_once(
    script: Client, log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if the process dies between the append and the removal."""
    append(script, [LONG, {"page": 7}])
    append(script, "at,page,ms\n2024-01-01T00:00:00Z,/csv,400\n", kind="text/csv")
    path = f"{BASE}/dead-letters/replay"
    assert post(script, path, {"all": True}).json()["appended"] == 0
    widen(script)
    monkeypatch.setattr(dead_letters, "remove", lambda *_: 0)
    post(script, path, {"all": True})
    monkeypatch.undo()
    answer = post(script, path, {"all": True}).json()
    assert (answer["appended"], answer["left"], answer["next"]) == (2, 1, None)
    assert [row["ms"] for row in appended(log)] == [300, 400]
    (left,) = listed(script)
    assert list(answer["faults"]) == [left["id"]]
    assert "at: Is missing" in answer["faults"][left["id"]]
    entry = AuditEntry.objects.filter(action="dead_letters.replay").latest("pk")
    assert entry.after["appended"] == 2


def test_a_replay_of_many_goes_on_behind_those_that_stay(
    script: Client, log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Old ones that fit nothing do not hide the others."""
    monkeypatch.setattr(service, "MAX_REPLAY", 3)
    append(script, [{"page": 7}] * 4 + [LONG] * 2)
    widen(script)
    first = post(script, f"{BASE}/dead-letters/replay", {"stream": "visits"}).json()
    assert (first["appended"], first["left"]) == (0, 3)
    body = {"stream": "visits", "after": first["next"]}
    rest = post(script, f"{BASE}/dead-letters/replay", body).json()
    assert (rest["appended"], rest["left"], rest["next"]) == (2, 1, None)
    assert len(appended(log)) == 2


def ahead(by_s: float, index: int) -> DeadLetter:
    stream = Stream.objects.get(name="visits")
    kinds = [("at", pa.timestamp("ms", "UTC"), False), ("page", pa.string(), False)]
    schema = pa.schema([*(pa.field(*one) for one in kinds), pa.field("gone", pa.int8())])
    row = {"at": round((time.time() + by_s) * 1000), "page": "/later", "gone": 1}
    batch = pa.RecordBatch.from_pylist([row], schema)
    return DeadLetter(stream.pk, "17-1", index, Reason.FUTURE, "too far", encode_block(batch, "at"))


def test_records_of_the_log_are_shown_and_appended_again(script: Client, log: Log) -> None:
    """Those of a column that was removed since lose it; one that is still ahead stays."""
    Stream.objects.filter(name="visits").update(retired={"gone": "int8"})
    dead_letters.keep(redis_client(), "sf", [ahead(0, 3), ahead(10**6, 4)])
    later, now = listed(script)
    assert json.loads(now["record"])["page"] == "/later"
    assert (now["position"], now["index"], now["reason"]) == ("17-1", 3, "future")
    answer = post(script, f"{BASE}/dead-letters/replay", {"ids": [now["id"], later["id"]]}).json()
    assert (answer["appended"], answer["left"]) == (1, 1)
    assert "ahead of now" in answer["faults"][later["id"]]
    (row,) = appended(log)
    assert (row["page"], row["ms"]) == ("/later", None)
    assert [one["id"] for one in listed(script)] == [later["id"]]


def test_a_list_has_filters_and_a_cursor(script: Client) -> None:
    """By stream and reason, the newest first."""
    append(script, [LONG | {"page": f"/{at}"} for at in range(5)])
    dead_letters.keep(redis_client(), "sf", [ahead(0, 0)])
    assert len(listed(script)) == 6
    assert len(listed(script, "?stream=visits&reason=body")) == 5
    assert len(listed(script, "?stream=s0")) == 0
    first = get(script, f"{BASE}/dead-letters?limit=4").json()
    rest = get(script, f"{BASE}/dead-letters?limit=4&cursor={first['next']}").json()
    assert rest["next"] is None
    names = [one["id"] for one in first["dead_letters"] + rest["dead_letters"]]
    assert len(set(names)) == 6
    assert get(script, f"{BASE}/dead-letters?reason=bad").status_code == 422
    assert get(script, f"{BASE}/dead-letters?stream=none").status_code == 404


def test_an_export_has_every_dead_letter(script: Client) -> None:
    """As lines of JSON, or as CSV that a spreadsheet takes for text."""
    append(script, [LONG | {"page": "/ä"}, "=1+1"])
    answer = get(script, f"{BASE}/dead-letters/export")
    lines = b"".join(answer.streaming_content).decode().splitlines()
    assert [json.loads(line)["index"] for line in lines] == [0, 1]
    assert "/ä" in json.loads(lines[0])["record"]
    answer = get(script, f"{BASE}/dead-letters/export?format=csv&stream=visits")
    assert "attachment" in answer["Content-Disposition"]
    rows = b"".join(answer.streaming_content).decode().splitlines()
    assert rows[0].startswith("id,stream,position,index")
    assert "'=1+1" in rows[2]


@pytest.mark.parametrize("verb", ["replay", "delete"])
def test_all_of_a_cluster_are_chosen_explicitly(script: Client, verb: str) -> None:
    """No selection, an empty one, and one beside `all` are refused and change nothing."""
    append(script, [LONG])
    widen(script)
    path = f"{BASE}/dead-letters/{verb}"
    chosen = listed(script)[0]["id"]
    refused = [{}, {"ids": []}, {"ids": None}, {"stream": ""}, {"all": False},
               {"all": True, "ids": [chosen]}, {"all": True, "stream": "visits"}]  # fmt: skip
    assert [post(script, path, body).status_code for body in refused] == [422] * len(refused)
    assert len(listed(script)) == 1
    assert post(script, path, {"all": True}).status_code == 200
    assert listed(script) == []


def test_dead_letters_are_given_up(script: Client) -> None:
    """By id or by filter; the audit log says who did."""
    append(script, [LONG] * 3)
    one = listed(script)[0]["id"]
    path = f"{BASE}/dead-letters/delete"
    assert post(script, path, {"ids": [one]}).json() == {"deleted": 1}
    assert post(script, path, {"ids": [one]}).json() == {"deleted": 0}
    assert post(script, path, {"reason_code": "future"}).json() == {"deleted": 0}
    body = {"stream": "visits", "reason_code": "body", "reason": "a test"}
    assert post(script, path, body).json() == {"deleted": 2}
    assert listed(script) == []
    assert AuditEntry.objects.filter(action="dead_letters.delete").latest("pk").reason == "a test"
    assert post(script, path, {"ids": ["../x"]}).status_code == 422
