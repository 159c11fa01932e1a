"""The pages of schemas and dead letters: declaring, from a sample, changing, appending again."""

import json
import re
from typing import Any, Final

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from controlplane.access.roles import Actor
from controlplane.models import Cluster, Stream
from controlplane.queries.spec import QuerySpec
from controlplane.records.bodies import Format
from controlplane.records.requests import OnBad, append_body
from controlplane.topology import queries, streams
from controlplane.topology.streams import StreamSpec
from controlplane.wire.query_text import QueryText
from controlplane.wire.schema import ColumnSpec, StreamSchema
from tests.dashboard.conftest import browser_of

pytestmark = pytest.mark.django_db(transaction=True)
STREAMS: Final = "/clusters/sf/streams/"
DEAD: Final = "/clusters/sf/dead-letters/"
# Bookings of rooms.
BOOKINGS: Final = StreamSchema(
    (
        ColumnSpec("booked_at", "timestamp(ms)", nullable=False),
        ColumnSpec("guest", "string"),
        ColumnSpec("nights", "int8"),
        ColumnSpec("room", "struct<floor: int16, view: bool>"),
    ),
    event_time="booked_at",
    max_future_s=60.0,
)


@pytest.fixture
def bookings(operator: Actor, sf: Cluster) -> Stream:
    """A stream that a query reads."""
    (stream,) = streams.register(operator, sf, [StreamSpec("bookings", schema=BOOKINGS.to_json())])
    text = QueryText({"longest": "max(nights)"}, key=("guest",))
    queries.submit(operator, sf, QuerySpec("stays", ("bookings",), text=text))
    return stream


@pytest.fixture
def browser(operator: Actor, bookings: Stream) -> Client:
    """The operator's browser."""
    return browser_of(operator)


def form(columns: list[tuple[str, str, bool]], **values: Any) -> dict[str, Any]:
    """Return the form as a browser sends it, with two empty rows."""
    sent: dict[str, Any] = {"column": [str(at) for at in range(1, len(columns) + 3)]}
    for at, (name, kind, nullable) in enumerate(columns, start=1):
        sent |= {f"name-{at}": name, f"type-{at}": kind}
        sent |= {f"nullable-{at}": "1"} if nullable else {}
    return sent | values


def present(**changed: Any) -> list[tuple[str, str, bool]]:
    return [(c.name, changed.get(c.name, c.type), c.nullable) for c in BOOKINGS.columns]


def text(answer: Any) -> str:
    return str(answer.content.decode())


def test_a_streams_page_shows_its_schema_and_dead_letters(
    browser: Client, bookings: Stream
) -> None:
    """Columns with their types, what they are in queries, and the settings."""
    page = text(browser.get(f"{STREAMS}{bookings.pk}/"))
    for told in ("booked_at", "struct&lt;floor: int16, view: bool&gt;", "room.floor int",
                 "event time", "Watermark delay", "<dt>Dead letters</dt><dd>none"):  # fmt: skip
        assert told in page
    listing = text(browser.get(STREAMS))
    assert "Declare a stream" in listing


def test_a_stream_is_declared_from_a_sample(browser: Client, sf: Cluster) -> None:
    """The proposal fills the form, with notes; what is sent back declares the stream."""
    body = b"at,who,n\n2024-01-01T00:00:00Z,M\xc3\xb6we,1\n2024-01-01T00:00:01Z,,1700000000000\n"
    upload = SimpleUploadedFile("birds.csv", body, "text/csv")
    answer = browser.post(f"{STREAMS}new/", {"action": "sample", "sample": upload, "format": ""})
    page = text(answer)
    assert "2 records of the sample read (csv)" in page
    assert "<option selected>timestamp(ms)</option>" in page
    assert "Möwe" in page
    sent = form(
        [("at", "timestamp(ms)", False), ("who", "string", True), ("n", "int64", False)],
        action="declare", stream="birds", declared_rate="2.5", event_time="at",
        max_future_s="10",
    )  # fmt: skip
    done = browser.post(f"{STREAMS}new/", sent)
    stream = Stream.objects.get(name="birds")
    assert done.headers["Location"] == f"{STREAMS}{stream.pk}/"
    found = StreamSchema.from_json(stream.schema)
    assert (found.event_time, found.max_future_s, stream.declared_rate) == ("at", 10.0, 2.5)
    assert [column.nullable for column in found.columns] == [False, True, False]


def test_a_type_can_be_written_and_the_event_time_be_a_column_without_a_name(
    browser: Client, sf: Cluster
) -> None:
    """Both are selects; a type that none of them has is beside its own."""
    sent = form([("place", "", True), ("at", "timestamp(ms)", False)], action="declare",
                stream="birds", event_time="#2")  # fmt: skip
    browser.post(f"{STREAMS}new/", sent | {"other-1": "struct<lat: float64>"})
    found = StreamSchema.from_json(Stream.objects.get(name="birds").schema)
    assert (found.columns[0].type, found.event_time) == ("struct<lat: float64>", "at")


def test_an_event_time_without_a_name_is_refused(browser: Client, sf: Cluster) -> None:
    """It would be the time of arrival otherwise."""
    sent = form([("place", "string", True), ("", "timestamp(ms)", False)], action="declare",
                stream="birds", event_time="#2")  # fmt: skip
    answer = browser.post(f"{STREAMS}new/", sent)
    assert (answer.status_code, "here is no column #2" in text(answer)) == (422, True)
    assert '<option value="#2" selected>' in text(answer)
    assert not Stream.objects.filter(name="birds").exists()


def test_the_event_time_follows_the_new_name_of_its_column(
    browser: Client, bookings: Stream
) -> None:
    page = text(browser.get(f"{STREAMS}{bookings.pk}/schema/"))
    (chosen,) = re.findall(r'<option value="([^"]*)" selected>booked_at<', page)
    sent = form(present(), event_time=chosen) | {"name-1": "made_at"}
    preview = browser.post(f"{STREAMS}{bookings.pk}/schema/preview/", sent)
    assert preview.status_code == 200
    assert " selected>made_at<" in text(preview)


@pytest.mark.parametrize(
    ("sent", "status", "told"),
    [
        (form([("größe", "int64", True)], stream="x"), 422, "letters, digits and _"),
        (form([("a", "text", True)], stream="x"), 422, "is not a type"),
        (form([], stream="x"), 422, "Name at least one column"),
        (form([("a", "int8", True)], stream="le vel"), 422, "is not valid"),
        (form([("a", "int8", True)], stream="x", event_time="a"), 422, "must be a timestamp"),
        (form([("a", "int8", True)], stream="x", max_future_s="soon"), 422, "number of seconds"),
        (form([("a", "int8", True)], stream="x", declared_rate="fast"), 422, "records/s"),
        (form([("a", "int8", True)], stream="bookings"), 409, "stays"),
    ],
)
def test_what_cannot_be_declared_is_said_beside_its_field(
    browser: Client, sent: dict[str, Any], status: int, told: str
) -> None:
    """And what was typed is still there."""
    answer = browser.post(f"{STREAMS}new/", sent | {"action": "declare"})
    assert answer.status_code == status
    page = text(answer).lower()
    assert told.lower() in page
    assert f'value="{sent["stream"]}"' in page
    assert not Stream.objects.filter(name="x").exists()


def test_a_sample_that_cannot_be_read_is_refused(browser: Client) -> None:
    """Without a file, of an unknown format, or broken."""
    for upload in (None, SimpleUploadedFile("x.txt", b"a\n1\n"),
                   SimpleUploadedFile("x.parquet", b"PAR1")):  # fmt: skip
        sent = {"action": "sample"} | ({"sample": upload} if upload else {})
        answer = browser.post(f"{STREAMS}new/", sent)
        assert answer.status_code == 422
        assert "The sample was not read" in text(answer)


def test_more_rows_are_added_to_what_is_typed(browser: Client) -> None:
    """Without losing it."""
    sent = form([("kept", "date", False)], action="more", stream="x")
    page = text(browser.post(f"{STREAMS}new/", sent))
    assert 'value="kept"' in page
    assert page.count('name="column"') == 9


def test_a_change_is_previewed_and_refused_with_the_queries(
    browser: Client, bookings: Stream
) -> None:
    """Nothing changes by looking; the refusal names the query, which is a link."""
    path = f"{STREAMS}{bookings.pk}/schema/"
    assert 'value="nights"' in text(browser.get(path))
    sent = form(present(), event_time="booked_at", max_future_s="60")
    sent["remove-3"] = "1"
    page = text(browser.post(f"{path}preview/", sent))
    assert "It would break" in page
    assert "stays</a>" in page
    assert 'name="remove-3" value="1" aria-label="Remove column 3" checked' in page
    answer = browser.post(path, sent)
    assert answer.status_code == 409
    assert "Nothing was changed" in text(answer)
    bookings.refresh_from_db()
    assert bookings.schema == BOOKINGS.to_json()
    nothing = form(present(), event_time="booked_at", max_future_s="60")
    assert "Nothing would change" in text(browser.post(f"{path}preview/", nothing))


def test_an_allowed_change_is_made(browser: Client, bookings: Stream) -> None:
    """A wider type, a new column, another setting."""
    path = f"{STREAMS}{bookings.pk}/schema/"
    columns = [*present(nights="int32"), ("paid", "decimal(9, 2)", True)]
    sent = form(columns, event_time="booked_at", max_future_s="90", reason="long stays")
    assert "all of it is allowed" in text(browser.post(f"{path}preview/", sent))
    assert browser.post(path, sent).status_code == 302
    bookings.refresh_from_db()
    found = StreamSchema.from_json(bookings.schema)
    assert found.max_future_s == 90
    assert {c.name: c.type for c in found.columns}["nights"] == "int32"
    assert "paid" in found.names


def test_dead_letters_are_shown_appended_again_and_given_up(
    browser: Client, operator: Actor, bookings: Stream
) -> None:
    """With reason, position and record; those that fit by now leave the list."""
    rows = [{"booked_at": 0, "guest": "<b>", "nights": 400}, {"guest": "no time"}]
    body = json.dumps(rows).encode()
    append_body(operator, bookings, body, Format.JSON, on_bad=OnBad.DEAD_LETTER)
    page = text(browser.get(f"{DEAD}?stream=bookings"))
    assert "nights: Must be a whole number" in page
    assert "&lt;b&gt;" in page
    assert "<b>" not in page.partition("<main")[2]
    assert "2 dead" in text(browser.get(STREAMS))
    exported = browser.get(f"{DEAD}export/?format=csv")
    assert b"no time" in b"".join(exported.streaming_content)  # type: ignore[attr-defined]
    wider = form(present(nights="int16"), event_time="booked_at", max_future_s="60")
    browser.post(f"{STREAMS}{bookings.pk}/schema/", wider)
    sent = {"all": "1", "stream": "bookings"}
    done = browser.post(f"{DEAD}replay/", sent, follow=True)
    assert "1 appended again, 1 stay" in text(done)
    left = text(browser.get(f"{DEAD}?stream=bookings"))
    assert "nights: Must be a whole number" not in left
    assert "Choose one or more" in text(browser.post(f"{DEAD}delete/", {}, follow=True))
    gone = browser.post(f"{DEAD}delete/", {"all": "1", "why": "a test"}, follow=True)
    assert "1 dead letter deleted" in text(gone)
    assert "No dead letters" in text(browser.get(DEAD))
