"""Lists of a cluster's dead letters: pages with filters, and all of them for export."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from django.http import StreamingHttpResponse

from controlplane.catalog.streams import stream_by_key
from controlplane.connections import redis_client
from controlplane.errors import Invalid
from controlplane.formats.csv_lines import csv_lines
from controlplane.models import Cluster, Stream
from controlplane.pagination.cursors import Cursor, Number, PageRange, Slice
from controlplane.pagination.pages import one_of, text_of
from controlplane.records.bodies.conformance import to_text
from controlplane.wire import dead_letters
from controlplane.wire.dead_letters import DeadLetter, Reason
from controlplane.wire.errors import InvalidBlock
from controlplane.wire.records.record_codec import decode_block

_NDJSON: Final = "application/x-ndjson"
# Dead letters that are read together.
_READ: Final = 500
_ID: Final = re.compile(r"[\w-]{1,60}:\d{1,18}:-?\d{1,9}")
# The dead letters by their number.
CURSOR: Final = Cursor[int](Number)
# Why a record became a dead letter, as shown to users.
ABOUT: Final[Mapping[Reason, str]] = {
    Reason.BODY: "does not match the schema (in a request)",
    Reason.CHANGE: "an update or a deletion that the stream does not read",
    Reason.FUTURE: "dated further ahead than the stream allows",
    Reason.LOST: "deleted by the broker before it was read",
    Reason.MESSAGE: "does not match the schema (a message of the topic)",
    Reason.NO_TIME: "no event time",
    Reason.SCHEMA: "does not match the schema (in the log)",
    Reason.TOMBSTONE: "a message without a value",
    Reason.UNREADABLE: "not a block of records",
}


@dataclass(frozen=True)
class DeadLetterFilters:
    """Filters of the list; None selects all."""

    stream: Stream | None = None
    reason: Reason | None = None

    @classmethod
    def of(cls, cluster: Cluster, values: Mapping[str, Any]) -> "DeadLetterFilters":
        """Read stream (name or id) and reason. Raises `NotFound`, `Invalid`."""
        named, reason = text_of(values, "stream"), one_of(values, "reason", tuple(Reason))
        stream = stream_by_key(cluster, named) if named else None
        return cls(stream, Reason(reason) if reason else None)

    def hold(self, letter: DeadLetter) -> bool:
        """Return True if a dead letter matches the filters."""
        if self.stream is not None and letter.stream != self.stream.pk:
            return False
        return self.reason is None or letter.reason is self.reason


@dataclass(frozen=True)
class DeadLetterRow:
    """A dead letter; `record`: its JSON text, empty if it was too large or cannot be read."""

    FIELDS: ClassVar = (
        "id", "stream", "position", "index", "reason", "message", "records", "record",
    )  # fmt: skip

    letter: DeadLetter
    stream: str
    record: str

    @property
    def about(self) -> str:
        """Return the description of the reason."""
        return ABOUT[self.letter.reason]

    def to_json(self) -> dict[str, Any]:
        """Return the dead letter as JSON values, by `FIELDS`."""
        own = {"stream": self.stream, "record": self.record, "reason": str(self.letter.reason)}
        return {name: own.get(name, getattr(self.letter, name, "")) for name in self.FIELDS}


@dataclass(frozen=True)
class DeadLetterListing:
    """The dead letters of a cluster that match filters, newest first."""

    cluster: Cluster
    filters: DeadLetterFilters

    def after(self, place: PageRange) -> Slice[DeadLetterRow]:
        """Return the dead letters after a cursor. Raises `Invalid` for an invalid cursor."""
        letters: list[DeadLetter] = []
        for letter in _newest(self.cluster, number_of(place.after)):
            if len(letters) == place.limit:
                following = CURSOR.text(letters[-1].number)
                return Slice([*_rows(self.cluster, letters)], following)
            if self.filters.hold(letter):
                letters.append(letter)
        return Slice([*_rows(self.cluster, letters)], "")


def number_of(cursor: str) -> int:
    """Return the number of a cursor, 0 for none. Raises `Invalid`."""
    return CURSOR.place(cursor) if cursor else 0


def chosen_letters(
    cluster: Cluster, filters: DeadLetterFilters, after: int = 0
) -> Iterator[DeadLetter]:
    """Yield the dead letters that match filters, oldest first, after a number."""
    every = dead_letters.every(redis_client(), cluster.slug, after)
    return (letter for letter in every if filters.hold(letter))


def every_row(cluster: Cluster, filters: DeadLetterFilters) -> Iterator[DeadLetterRow]:
    """Yield the dead letters that match filters with their records, oldest first."""
    yield from _rows(cluster, chosen_letters(cluster, filters))


def letters_of(cluster: Cluster, ids: list[str]) -> list[DeadLetter]:
    """Return the existing dead letters of these ids. Raises `Invalid`."""
    wrong = [name for name in ids if not _ID.fullmatch(name)]
    if wrong:
        raise Invalid({"ids": [f"{wrong[0][:100]!r} is not an id of a dead letter"]})
    return dead_letters.by_ids(redis_client(), cluster.slug, ids)


def record_text(letter: DeadLetter) -> str:
    """Return the record of a dead letter as JSON text, "" if it cannot be read."""
    if letter.reason.is_text:
        return letter.data.decode("utf-8", "replace")
    try:
        rows = decode_block(letter.data).records.to_pylist()
    except InvalidBlock:
        return ""
    return to_text(rows[0] if len(rows) == 1 else rows)


def _newest(cluster: Cluster, before: int) -> Iterator[DeadLetter]:
    client = redis_client()
    while newest := dead_letters.newest(client, cluster.slug, before=before, limit=_READ):
        yield from newest
        before = newest[-1].number
        if before <= 1:
            return


def _rows(cluster: Cluster, letters: Iterable[DeadLetter]) -> Iterator[DeadLetterRow]:
    names = dict(Stream.objects.filter(cluster=cluster).values_list("pk", "name"))
    for letter in letters:
        yield DeadLetterRow(letter, names.get(letter.stream, ""), record_text(letter))


def exported(cluster: Cluster, filters: DeadLetterFilters, form: str) -> StreamingHttpResponse:
    """Return a streamed response with dead letters as `ndjson` or `csv`."""
    rows = every_row(cluster, filters)
    csv_form = form == "csv"
    lines, kind = (letter_lines(rows), "text/csv") if csv_form else (ndjson_lines(rows), _NDJSON)
    response = StreamingHttpResponse(lines, content_type=f"{kind}; charset=utf-8")
    name = f"{cluster.slug}-dead-letters.{form}"
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    return response


def ndjson_lines(rows: Iterable[DeadLetterRow]) -> Iterator[str]:
    """Yield a JSON object per line."""
    for row in rows:
        yield f"{json.dumps(row.to_json(), ensure_ascii=False)}\n"


def letter_lines(rows: Iterable[DeadLetterRow]) -> Iterator[str]:
    """Yield a header and a line of CSV per dead letter."""
    yield csv_lines([DeadLetterRow.FIELDS])
    for row in rows:
        yield csv_lines([list(row.to_json().values())])
