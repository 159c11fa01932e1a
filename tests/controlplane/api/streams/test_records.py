"""The door for records: what it takes, and what it says to what it does not take."""

import gzip
import json
import time
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pytest
from confluent_kafka import Producer
from django.test import Client

from controlplane.models import AuditEntry, Cluster
from controlplane.records import append
from controlplane.wire.log import open_log
from controlplane.wire.log.values import START, Log, LogEntry, LogPosition
from controlplane.wire.records.record_codec import decode_block
from tests.controlplane.api.callers import scripted
from tests.support.cluster import actor, stream_id
from tests.support.kafka import running_kafka
from tests.support.redis_server import free_port

pytestmark = pytest.mark.django_db(transaction=True)
RECORDS = "/api/v1/clusters/sf/streams/s1/records"
LOG = "/api/v1/clusters/sf/log"
ARROW = "application/vnd.apache.arrow.stream"
GOOD = {"ts": 1_211_587_200_000, "car": 17, "x": 52300, "y": 65100, "speed": 830}


@pytest.fixture
def owner(sf: Cluster) -> Client:
    """A client with an admin's token."""
    return scripted(actor("admin"))


def post(client: Client, body: Any, path: str = RECORDS, kind: str = "application/json") -> Any:
    data = body if isinstance(body, bytes | str) else json.dumps(body)
    return client.post(path, data, content_type=kind)


def entries(log: Log, name: str = "s1") -> list[LogEntry]:
    stream = stream_id(Cluster.objects.get(slug="sf"), name)
    end = log.position_after(LogPosition(START, 0), 10**9)
    return log.read_streams([stream], START, end.position).get(stream, [])


def rows_in(log: Log, name: str = "s1") -> list[dict[str, Any]]:
    found = [decode_block(entry.block).records.to_pylist() for entry in entries(log, name)]
    return [row | {"ts": int(row["ts"].timestamp() * 1000)} for block in found for row in block]


def arrow(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


def test_rows_of_json_are_appended_together(script: Client, log: Log) -> None:
    """One request is one append; the answer says where it stands."""
    other = GOOD | {"ts": "2008-05-24T00:00:01.5Z", "speed": None}
    without = {name: GOOD[name] for name in ("ts", "car", "x", "y")}
    answer = post(script, {"records": [GOOD, other, without]})
    assert answer.status_code == 201
    position = entries(log)[0].position
    none: dict[str, Any] = {"dead_letters": 0, "late": 0, "ahead": None, "warnings": []}
    assert answer.json() == {"position": position, "records": 3} | none
    empty = GOOD | {"speed": None}
    assert rows_in(log) == [GOOD, empty | {"ts": 1_211_587_201_500}, empty]


def test_the_answer_has_the_late_records_and_a_time_ahead(script: Client, sf: Cluster) -> None:
    """By the delay of the stream, 120 s; a time beyond the calendar is a dead letter later."""
    now = round(time.time() * 1000)

    def answer(*times: Any) -> tuple[int, str | None]:
        given = post(script, {"records": [GOOD | {"ts": ms} for ms in times]})
        assert given.status_code == 201
        return given.json()["late"], given.json()["ahead"]

    assert answer(now) == (0, None)
    assert answer(now - 3_600_000, now - 121_000, now - 100_000, now) == (2, None)
    late, ahead = answer(now + 1_800_000, now, now, now)
    assert (late, datetime.fromisoformat(ahead or "")) == (
        0, datetime.fromtimestamp((now + 1_800_000) / 1000, UTC),
    )  # fmt: skip
    assert answer(now) == (0, None)
    assert answer(now, now, "9999-12-31T23:59:59Z") == (0, None)
    assert answer("1971-01-01T00:00:00Z") == (1, None)
    assert sf.streams.get(name="s1").late_records == 0, "counted when the pipeline has read them"


def test_a_stream_is_found_by_its_id_too(script: Client, sf: Cluster, log: Log) -> None:
    """The id is what the client of the log uses."""
    path = f"/api/v1/clusters/sf/streams/{stream_id(sf, 's2')}/records"
    assert post(script, {"records": [GOOD]}, path).status_code == 201
    assert rows_in(log, "s2") == [GOOD]
    for missing in ("nothing", "999999", "9" * 30):
        unknown = post(script, {"records": [GOOD]}, path.replace(str(stream_id(sf, "s2")), missing))
        assert unknown.status_code == 404
        assert missing in unknown.json()["detail"]


def test_arrow_is_taken_with_columns_in_any_order(script: Client, log: Log) -> None:
    """As pandas and others write it: nullable, wider numbers, seconds as the unit of time."""
    table = pa.table(
        {
            "speed": pa.array([830, None], pa.int64()),
            "y": [65100, 1],
            "x": [52300, 2],
            "car": [17, 18],
            "ts": pa.array([1_211_587_200, 1_211_587_201], pa.timestamp("s", "UTC")),
        }
    )
    assert post(script, arrow(table), kind=ARROW).json()["records"] == 2
    second = {"ts": 1_211_587_201_000, "car": 18, "x": 2, "y": 1, "speed": None}
    assert rows_in(log) == [GOOD, second]


def test_faults_say_which_record_and_column(script: Client, log: Log) -> None:
    """All or nothing: the good record beside them is not appended either."""
    bad: list[Any] = [
        GOOD,
        GOOD | {"car": "seventeen", "x": 1.5},
        GOOD | {"ts": "2008-05-24T00:00:00"},
        {"ts": 1, "car": 2**31, "y": True, "colour": "red"},
        7,
    ]
    answer = post(script, {"records": bad})
    assert answer.status_code == 422
    assert "4 of 5 records are not valid" in answer.json()["detail"]
    assert {row: sorted(told) for row, told in answer.json()["rows"].items()} == {
        "1": ["car", "x"],
        "2": ["ts"],
        "3": ["car", "colour", "x", "y"],
        "4": [""],
    }
    assert answer.json()["rows"]["2"]["ts"][0].startswith("Must be milliseconds")
    assert answer.json()["rows"]["3"]["x"] == ["Is missing"]
    assert entries(log) == []


def test_of_very_many_faults_the_first_are_told(script: Client) -> None:
    """An answer as large as the request would help nobody."""
    answer = post(script, {"records": [{}] * 500}).json()
    assert "500 of 500" in answer["detail"]
    assert len(answer["rows"]) == 20


@pytest.mark.parametrize("body", [[], {}, {"records": []}, {"records": {}}, {"records": "x"}, 7])
def test_a_body_of_another_shape_is_refused(script: Client, log: Log, body: Any) -> None:
    """422, and nothing is appended."""
    answer = post(script, body)
    assert answer.status_code == 422
    assert "records" in answer.json()["fields"]
    assert entries(log) == []


def test_what_is_no_arrow_or_of_another_kind_is_refused(script: Client) -> None:
    """With the kinds that are taken."""
    assert post(script, b"\x00" * 100, kind=ARROW).status_code == 400
    assert post(script, arrow(pa.table({"x": [1]}))[:-20], kind=ARROW).status_code == 400
    answer = post(script, "ts,car", kind="text/plain")
    assert answer.status_code == 415
    assert ARROW in answer.json()["detail"]


def test_too_large_a_request_is_refused(script: Client, settings: Any) -> None:
    """413 says how large it may be."""
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = 100
    answer = post(script, {"records": [GOOD] * 10})
    assert answer.status_code == 413
    assert "100 bytes" in answer.json()["detail"]


def test_a_repeated_request_is_appended_once(script: Client, log: Log) -> None:
    """It is answered as the first was; half a stamp is refused, and one too old as well."""
    path = f"{RECORDS}?producer=loader&sequence="
    answers = [post(script, {"records": [GOOD]}, f"{path}7").json() for _ in range(3)]
    assert answers[0] == answers[1] == answers[2]
    assert len(entries(log)) == 1
    post(script, {"records": [GOOD]}, f"{path}900")
    other = post(script, {"records": [GOOD | {"car": 18}]}, f"{path}900")
    assert (other.status_code, other.json()["code"]) == (409, "stamp_reused")
    stale = post(script, {"records": [GOOD]}, f"{path}8")
    assert (stale.status_code, stale.json()["code"]) == (409, "stale_sequence")
    half = post(script, {"records": [GOOD]}, f"{RECORDS}?producer=loader")
    assert (half.status_code, "sequence" in half.json()["fields"]) == (422, True)
    wrong = post(script, {"records": [GOOD]}, f"{path}-1")
    assert (wrong.status_code, "sequence" in wrong.json()["fields"]) == (422, True)
    assert len(entries(log)) == 2


def test_a_full_log_answers_429_with_when_to_come_back(
    script: Client, sf: Cluster, log: Log
) -> None:
    """The cluster's own bound counts; once the pipeline has read there is room again."""
    Cluster.objects.update(log_limit_mb=1)
    batch = {"records": [GOOD] * 30_000}
    assert [post(script, batch).status_code for _ in range(2)] == [201, 429]
    answer = post(script, batch)
    assert answer["Retry-After"] == "2"
    body = answer.json()
    assert body["code"] == "log_full"
    assert body["data"]["unit"] == "bytes"
    assert 0 < body["data"]["waiting"] <= body["data"]["limit"] == 1024 * 1024
    assert "start the cluster" in body["detail"]
    log.mark_committed(log.position_after(LogPosition(START, 0), 10**9))
    assert post(script, batch).status_code == 201


def test_a_log_that_is_away_answers_503(script: Client, settings: Any) -> None:
    """To ask again is safe with a stamp, and the answer says that nobody knows."""
    settings.REDIS_URL = f"redis://127.0.0.1:{free_port()}/0"
    answer = post(script, {"records": [GOOD]})
    assert (answer.status_code, answer["Retry-After"]) == (503, "5")
    assert answer.json()["code"] == "log_away"


def test_the_log_is_moved_to_kafka_while_the_cluster_is_stopped(
    script: Client, owner: Client, sf: Cluster, redis_url: str
) -> None:
    """Then records go there; the move is in the audit log, without the password."""
    with running_kafka() as address:
        url = f"kafka://me:secret@{address}/t-{uuid4().hex}"
        body = {"url": url, "limit_mb": 64, "reason": "larger"}
        assert post(script, body, LOG).status_code == 403
        answer = post(owner, body, LOG)
        assert answer.status_code == 200
        assert answer.json()["log_url"] == url.replace("secret", "***")
        assert answer.json()["log_limit_mb"] == 64
        assert post(script, {"records": [GOOD]}).json() == {
            "position": "1-0", "records": 1, "dead_letters": 0, "late": None, "ahead": None,
            "warnings": [],
        }  # fmt: skip
        opened = open_log(url, "sf", redis_url)
        assert rows_in(opened) == [GOOD]
        opened.close()
        # The door keeps its connection, and this Kafka ends here.
        append._opened.cache_clear()
    entry = AuditEntry.objects.get(action="cluster.log")
    assert "secret" not in json.dumps([entry.before, entry.after])
    assert (entry.reason, entry.after["log_limit_mb"]) == ("larger", 64)


def test_a_topic_of_others_is_refused_as_a_log_with_the_reason(owner: Client, sf: Cluster) -> None:
    with running_kafka() as address:
        topic = f"orders-{uuid4().hex}"
        producer = Producer({"bootstrap.servers": address, "log_level": 2})
        producer.produce(topic, value=b'{"order": 1}', partition=0)
        assert producer.flush(20) == 0
        url = f"kafka://me:secret@{address}/{topic}"
        for path, body in (
            (LOG, {"url": url}),
            ("/api/v1/clusters", {"slug": "new", "name": "New", "log_url": url}),
        ):
            answer = post(owner, body, path)
            assert answer.status_code == 422
            (why,) = answer.json()["fields"]["log_url"]
            assert f"{topic} is not a log of Weir" in why
            assert "it has no header 'weir'" in why
            assert "name an empty topic" in why
            assert "secret" not in answer.content.decode()
    assert Cluster.objects.get().log_url == ""


def test_a_running_cluster_keeps_its_log(owner: Client, sf: Cluster) -> None:
    """Its windows would begin anew; the bound may change."""
    Cluster.objects.update(desired=Cluster.Desired.RUNNING)
    answer = post(owner, {"url": "kafka://b:9092", "limit_mb": 512}, LOG)
    assert (answer.status_code, answer.json()["code"]) == (409, "running")
    assert post(owner, {"url": "", "limit_mb": 9}, LOG).json()["log_limit_mb"] == 9
    assert Cluster.objects.get().log_url == ""


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"url": "http://x"}, "log_url"),
        ({"url": "kafka://b:9092/t?ssl.key.location=/etc/passwd"}, "log_url"),
        ({"url": "kafka://nowhere/t"}, "log_url"),
        ({"url": "redis://:pw@127.0.0.1:9/0"}, "log_url"),
        ({"limit_mb": 0}, "limit_mb"),
        ({"url": "x" * 301}, "url"),
    ],
)
def test_a_log_that_cannot_be_is_refused(
    owner: Client, sf: Cluster, body: dict[str, Any], field: str
) -> None:
    """422 names the field; a viewer may not even try."""
    answer = post(owner, body, LOG)
    assert answer.status_code == 422
    assert field in answer.json()["fields"]
    assert Cluster.objects.get().log_url == ""


@pytest.mark.parametrize(
    ("path", "kind"),
    [(RECORDS, "application/json"), (RECORDS, ARROW), ("/api/v1/clusters/sf/streams/infer", ARROW),
     (LOG, "application/json"), ("/login/", "application/x-www-form-urlencoded")],
)  # fmt: skip
def test_a_body_with_a_content_encoding_is_refused_everywhere(
    script: Client, log: Log, path: str, kind: str
) -> None:
    """Also if it is not encoded, or the encoding is unknown: nobody reads such a header here."""
    body = json.dumps({"records": [GOOD]}).encode()
    for encoding, content in (
        ("gzip", gzip.compress(body)),
        ("GZIP", body),
        ("br, identity", body),
    ):
        headers = {"content-encoding": encoding}
        answer = script.post(path, content, content_type=kind, headers=headers)
        assert answer.status_code == 415
        assert answer["Accept-Encoding"] == "identity"
        assert answer.json()["code"] == "encoded_body"
        assert f"without Content-Encoding: {encoding}" in answer.json()["detail"]
    assert entries(log) == []
    plain = script.post(RECORDS, body, content_type="application/json",
                        headers={"content-encoding": "identity"})  # fmt: skip
    assert plain.status_code == 201


def test_refusals_of_bodies_are_problems_with_codes_and_places(script: Client, log: Log) -> None:
    """What ended or fooled a process is an answer; nothing is appended."""
    arrays: Any = pa.UnionArray
    union = arrays.from_sparse(
        pa.array([5, 7], pa.int8()), [pa.array([1, 2]), pa.array(["a", "b"])], type_codes=[5, 7]
    )
    answer = post(script, arrow(pa.table({"car": union})), kind=ARROW)
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid")
    twice = b'{"records": [{"ts": 1, "ts": 2}]}'
    answer = post(script, twice)
    assert (answer.status_code, answer.json()["code"]) == (400, "bad_json")
    assert answer.json()["data"]["fault"] == "name"
    answer = post(script, b'{"records":\n[{"speed": NaN}]}')
    assert answer.json()["data"] == {"fault": "number", "line": 2, "column": 12}
    answer = post(script, b'{"records": [{"shop": "\\u0000"}]}')
    assert answer.json()["data"] == {"fault": "character", "line": 1, "column": 24}
    answer = post(script, b'ts,car\n1,"2\n3,4\n', kind="text/csv")
    assert answer.status_code == 422
    assert "line 2, column 3 is never closed" in answer.json()["fields"]["records"][0]
    assert entries(log) == []


def test_seconds_in_place_of_milliseconds_are_a_warning(script: Client, log: Log) -> None:
    """The records are appended: they may be of 1970."""
    answer = post(script, {"records": [GOOD | {"ts": 1_792_310_405}]})
    assert answer.status_code == 201
    (warning,) = answer.json()["warnings"]
    assert (warning["code"], warning["column"]) == ("before_1975", "ts")
    assert "is 1970-01-21" in warning["text"]
    assert len(entries(log)) == 1
