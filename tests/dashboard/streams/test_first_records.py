"""The first records of a stream from its page: a command with a token, a file, the sample."""

import json
import re
import shlex
from datetime import UTC, datetime, timedelta
from html import unescape
from typing import Any, Final

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.utils import timezone

from controlplane.access.roles import Actor
from controlplane.connections import redis_client
from controlplane.models import ApiToken, Cluster, Stream
from controlplane.records.bodies import Format
from controlplane.records.decoding import conform
from controlplane.records.examples import example_record
from controlplane.topology import streams
from controlplane.topology.streams import StreamSpec
from controlplane.wire import keys
from controlplane.wire.schema import ColumnSpec, StreamSchema
from controlplane.wire.types import type_names
from tests.dashboard.conftest import browser_of
from tests.support.admission import arrived
from tests.support.cluster import confirmed

pytestmark = pytest.mark.django_db(transaction=True)
STREAMS: Final = "/clusters/sf/streams/"
NOW: Final = datetime(2031, 5, 6, 7, 8, 9, tzinfo=UTC)
# Parcels, and a file of them whose last line does not fit.
_AT: Final = f"{datetime.now(UTC) - timedelta(minutes=1):%Y-%m-%dT%H:%M:%SZ}".encode()
PARCELS: Final = b"scanned_at,depot,grams\n%b,Graz,120\n%b,Linz,75\n" % (_AT, _AT)
FAULTY: Final = PARCELS + b"%b,Wels,light\n" % _AT


@pytest.fixture
def stream(operator: Actor, sf: Cluster) -> Stream:
    """A stream without records."""
    columns = [("scanned_at", "timestamp(ms)", False), ("depot", "string", True),
               ("grams", "int32", True)]  # fmt: skip
    schema = StreamSchema(tuple(ColumnSpec(*column) for column in columns), "scanned_at")
    (row,) = streams.register(operator, sf, [StreamSpec("parcels", schema=schema.to_json())])
    return row


@pytest.fixture
def browser(operator: Actor) -> Client:
    """The operator's browser."""
    return browser_of(operator)


def count_of(stream: Stream) -> int:
    return int(redis_client().hget(keys.counts_key("sf"), str(stream.pk)) or 0)


def messages(answer: Any) -> list[str]:
    return [str(message) for message in answer.context["messages"]]


def uploaded(name: str, body: bytes) -> SimpleUploadedFile:
    return SimpleUploadedFile(name, body)


def test_the_command_appends_its_record_with_the_new_token(
    browser: Client, stream: Stream, client: Client
) -> None:
    # The cluster runs already, and has measured that nothing arrives.
    arrived(stream.cluster, timezone.now(), {stream.name: [0.0, 0.0]})
    page = browser.get(f"{STREAMS}{stream.pk}/").content.decode()
    assert "$TOKEN" in unescape(page)
    assert browser.post(f"{STREAMS}{stream.pk}/token/").status_code == 401
    made = confirmed(browser).post(f"{STREAMS}{stream.pk}/token/")
    assert (made.status_code, "no-store" in made.headers["Cache-Control"]) == (201, True)
    found = re.search(r'id="send-command">(.*?)</pre>', made.content.decode(), re.DOTALL)
    assert found is not None
    words = shlex.split(unescape(found[1]).replace("\\\n", " "))
    url = next(word for word in words if word.startswith("http"))
    headers = dict(words[at + 1].split(": ", 1) for at, word in enumerate(words) if word == "-H")
    answer = client.post(
        url.partition("testserver")[2], words[words.index("-d") + 1], headers["Content-Type"],
        headers={"Authorization": headers["Authorization"]},
    )  # fmt: skip
    assert (answer.status_code, answer.json()["records"]) == (201, 1)
    assert count_of(stream) == 1
    row = ApiToken.objects.get()
    assert (row.role, row.cluster_id) == ("producer", stream.cluster_id)


def test_a_file_is_appended_and_what_does_not_fit_is_counted(
    browser: Client, stream: Stream
) -> None:
    path = f"{STREAMS}{stream.pk}/append/"
    done = browser.post(path, {"records": uploaded("a.csv", FAULTY)}, follow=True)
    assert messages(done) == ["2 records appended; 1 record did not fit: see Dead letters."]
    assert count_of(stream) == 2
    for sent in ({}, {"records": uploaded("a.txt", PARCELS)}):
        refused = browser.post(path, sent, follow=True)
        assert count_of(stream) == 2
        assert len(messages(refused)) == 1
    named = {"records": uploaded("a.txt", PARCELS), "format": "csv"}
    assert messages(browser.post(path, named, follow=True)) == ["2 records appended."]


def test_the_sample_that_declared_a_stream_is_appended_once(browser: Client, sf: Cluster) -> None:
    sample = {"action": "sample", "sample": uploaded("parcel scans.csv", PARCELS), "format": ""}
    page = browser.post(f"{STREAMS}new/", sample)
    assert page.context["values"]["stream"] == "parcel-scans"
    columns = [("scanned_at", "timestamp(ms)", False), ("depot", "string", True),
               ("grams", "int64", True)]  # fmt: skip
    sent: dict[str, Any] = {"action": "declare", "stream": "parcels", "event_time": "scanned_at",
                            "column": ["1", "2", "3"],
                            "kept_sample": page.context["kept_sample"]}  # fmt: skip
    for at, (name, kind, nullable) in enumerate(columns, 1):
        sent |= {f"name-{at}": name, f"type-{at}": kind, f"nullable-{at}": str(int(nullable))}
    shown = browser.post(f"{STREAMS}new/", sent, follow=True)
    stream = Stream.objects.get(name="parcels")
    assert shown.context["kept_sample"].file == "parcel scans.csv"
    path = f"{STREAMS}{stream.pk}/append-sample/"
    assert messages(browser.post(path, follow=True)) == ["2 records appended."]
    again = browser.post(path, follow=True)
    assert (count_of(stream), again.context["kept_sample"]) == (2, None)


def test_a_sample_is_of_the_stream_that_it_declared_and_of_its_user(
    browser: Client, stream: Stream
) -> None:
    sample = {"action": "sample", "sample": uploaded("scans.csv", PARCELS), "format": ""}
    browser.post(f"{STREAMS}new/", sample)
    assert browser.get(f"{STREAMS}{stream.pk}/").context["kept_sample"] is None
    refused = browser.post(f"{STREAMS}{stream.pk}/append-sample/", follow=True)
    assert (len(messages(refused)), count_of(stream)) == (1, 0)


def test_a_viewer_sees_no_way_to_send(viewer: Actor, stream: Stream) -> None:
    watching = browser_of(viewer)
    assert "send-command" not in watching.get(f"{STREAMS}{stream.pk}/").content.decode()
    for path in ("append", "append-sample", "token"):
        assert watching.post(f"{STREAMS}{stream.pk}/{path}/").status_code == 403


@pytest.mark.parametrize(
    "kind",
    [
        *(name for name in type_names() if "<" not in name and "(" not in name),
        "decimal(12, 2)", "decimal(4, 4)", "timestamp(ns)", "timestamp(s)", "list<int8>",
        "struct<floor: int16, view: list<bool>>",
    ],
)  # fmt: skip
def test_the_example_of_a_record_conforms(kind: str) -> None:
    schema = StreamSchema((ColumnSpec("value", kind, nullable=False),))
    body = json.dumps([example_record(schema, NOW)]).encode()
    assert conform(body, Format.JSON, schema).batch.num_rows == 1
