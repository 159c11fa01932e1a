"""Previews of queries: the request, and the response of the worker, as JSON."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from pydantic import TypeAdapter

# Windows of a preview, the newest ones.
MOST_WINDOWS: Final = 50
# Records that a preview evaluates, and bytes of the log that it reads.
MOST_RECORDS: Final = 20_000
MOST_BYTES: Final = 32 << 20


@dataclass(frozen=True)
class PreviewRequest:
    """The request of a preview: `text` as stored, `left`: ids of the streams of the left side.

    `user`, `token`: who waits for it; a newer token of the same user cancels it.
    """

    cluster: int
    text: str
    left: tuple[int, ...]
    user: str
    token: str


@dataclass(frozen=True)
class ReadStream:
    """The records of a stream that were evaluated; `first`, `last`: their event times."""

    name: str
    records: int
    first: datetime | None = None
    last: datetime | None = None


@dataclass(frozen=True)
class PreviewWindow:
    """A window of one key, with JSON values; `errors`: by aggregate why it has no value."""

    start: datetime
    key: Mapping[str, Any]
    values: Mapping[str, Any]
    errors: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Preview:
    """The windows of a query over the newest records of its streams, newest first.

    `window_count`: of all windows; `late`, `rejected`: records that were late, and that do not
    match their schema. `is_partial`: True if a limit left out records. `took_ms`: from the request
    to the response.
    """

    streams: Sequence[ReadStream]
    windows: Sequence[PreviewWindow]
    window_count: int = 0
    late: int = 0
    rejected: int = 0
    is_partial: bool = False
    took_ms: int = 0

    @property
    def records(self) -> int:
        """Return the number of evaluated records."""
        return sum(stream.records for stream in self.streams)


@dataclass(frozen=True)
class BrowseRequest:
    """The request of messages: `source`, `schema` as JSON, a condition, and where they begin.

    `stream`: its id, 0 before it is declared. `user`, `token`: as of a preview.
    """

    cluster: int
    stream: int
    source: str
    schema: str
    where: str
    partition: int | None
    offset: int | None
    since_ms: int | None
    limit: int
    user: str
    token: str
    topic: str = ""


@dataclass(frozen=True)
class BrowsedMessage:
    """A message, row or event.

    `key`: of a row its file; `text`: its record as JSON, else its value; `fault`: why it is not a
    record; `topic`: of a pattern that of the message, else empty.
    """

    partition: int
    offset: int
    sent_at: datetime
    key: str
    text: str
    fault: str
    topic: str = ""


@dataclass(frozen=True)
class BrowsedSource:
    """Messages of a source, newest first, of `read` messages, of which `matching` match.

    `sample`: before a declaration records to propose columns of, in base64: lines of JSON, or the
    beginning of a file.
    """

    messages: Sequence[BrowsedMessage]
    read: int
    matching: int
    sample: str = ""


@dataclass(frozen=True)
class PreviewResponse:
    """The response of the worker: a preview or messages, or the code and text of an error."""

    preview: Preview | None = None
    browsed: BrowsedSource | None = None
    code: str = ""
    text: str = ""
    data: Mapping[str, Any] = field(default_factory=dict)


BROWSE: Final = TypeAdapter(BrowseRequest)
REQUEST: Final = TypeAdapter(PreviewRequest)
RESPONSE: Final = TypeAdapter(PreviewResponse)
