"""Errors of the wire, with their figures."""

import re
from collections.abc import Sequence
from typing import Final

from controlplane.formats.log_lines import CONTINUED
from controlplane.wire.redaction import without_password

_ERROR: Final = re.compile(r"(Error|Exception|ERROR|CRITICAL|FATAL)\b")
_TRACEBACK: Final = "Traceback (most recent call last)"
_JAVA_FRAME: Final = re.compile(r"\s*(at [\w.$]+[(]|\.\.\. \d+ more)")
# Errors of the wire are whole sentences; their class means nothing to an operator.
_OWN: Final = re.compile(r"^controlplane\.wire\.errors\.\w+: ")


class WireError(Exception):
    """The base of all errors of the wire."""


class LogFull(WireError):
    """The log holds more unread data than its limit; the producer must slow down.

    `waiting` and `limit` are counted in `unit`: "records" or "bytes".
    """

    def __init__(self, waiting: int, limit: int, unit: str = "records") -> None:
        super().__init__(
            f"the log holds {waiting:,} {unit} that the pipeline has not read "
            f"(limit {limit:,}): retry later, or start the cluster"
        )
        self.waiting = waiting
        self.limit = limit
        self.unit = unit


class RedisOutOfMemory(LogFull):
    """Redis has reached its `maxmemory`; nothing was appended."""

    def __init__(self, waiting: int) -> None:
        super().__init__(waiting, 0, "bytes")
        self.args = (
            f"Redis is out of memory (maxmemory), {waiting:,} bytes of it are log that the "
            "pipeline has not read: retry later, start the cluster, or give Redis more",
        )


class AppendTooLarge(WireError):
    """An append exceeds the maximum size of the log.

    `limit`: in bytes, None if unknown.
    """

    def __init__(self, size: int, limit: int | None) -> None:
        most = "" if limit is None else f" of at most {limit:,}"
        super().__init__(
            f"an append of {size:,} bytes is too large for the log{most}: append less at once"
        )
        self.size = size
        self.limit = limit


class LogUnavailable(WireError):
    """The log is unavailable, or its response was lost: append again with the same token.

    `token`: the `controlplane.wire.log.IdempotencyToken` of the append, if any.
    """

    token: object = None

    def __init__(self, why: str) -> None:
        super().__init__(f"the log cannot be reached: {why}")


class SourceUnavailable(LogUnavailable):
    """The place of a source, or the registry of its schemas, does not answer or refuses."""

    def __init__(self, why: str) -> None:
        WireError.__init__(self, why)


class LogGap(WireError):
    """Records to be read are no longer in the log."""

    def __init__(self, why: str) -> None:
        super().__init__(
            f"{why}. To continue with the remaining records, add lost=skip to the log's URL; "
            "a topic that was created again needs another name"
        )


class BadLogUrl(WireError):
    """A URL does not address a log."""


class BadMessage(WireError):
    """A message of a Kafka topic was not written by Weir."""

    def __init__(self, offset: int, why: str) -> None:
        super().__init__(f"message {offset} of the log's topic was not appended by Weir: {why}")


class InvalidIdempotencyToken(WireError):
    """A producer's id or a sequence is invalid; `part` names which of the two."""

    def __init__(self, part: str, why: str) -> None:
        super().__init__(why)
        self.part = part


class StaleIdempotencyToken(WireError):
    """A sequence is so old that it is unknown whether it was appended; nothing was stored."""

    def __init__(self, producer: str, sequence: int, high: int) -> None:
        super().__init__(
            f"sequence {sequence} of producer {producer!r} is too far behind {high}, its highest: "
            "whether it was appended is not known any more"
        )
        self.producer = producer
        self.sequence = sequence
        self.high = high


class BufferFull(WireError):
    """The buffer of a batching producer is full: the log is too slow."""

    def __init__(self, size: int, held: int, limit: int) -> None:
        super().__init__(
            f"no room for {size:,} bytes: {held:,} wait to be appended (limit {limit:,}): "
            "send slower, or look why the log takes nothing"
        )
        self.size = size
        self.held = held
        self.limit = limit


class Undelivered(WireError):
    """A batching producer was closed, or timed out, before the log had acknowledged records."""


class IdempotencyTokenReused(WireError):
    """A token was used before, for other records: nothing was appended."""

    def __init__(self, producer: str, sequence: int) -> None:
        super().__init__(
            f"sequence {sequence} of producer {producer!r} was used before, for other records: "
            "give each append a sequence of its own, and repeat an append as it was"
        )
        self.producer = producer
        self.sequence = sequence


class BadBlock(WireError):
    """Records cannot be appended to their stream; `column`: the column at fault, or ""."""

    def __init__(self, stream: int, why: str, column: str = "", record: int | None = None) -> None:
        where = f"column {column}: " if column else ""
        place = "" if record is None else f"record {record}: "
        super().__init__(f"stream {stream}: {place}{where}{why}")
        self.stream = stream
        self.column = column
        self.record = record
        self.why = why


class InvalidBlock(WireError):
    """Bytes of the log are not a block."""


class UnknownSchema(WireError):
    """A producer does not know the schema of a stream."""

    def __init__(self, cluster: str, stream: int) -> None:
        super().__init__(
            f"the schema of stream {stream} of cluster {cluster!r} is not known: declare it, or "
            "give it to the producer"
        )
        self.stream = stream


class RoutingGap(WireError):
    """A routing delta was published out of order."""

    def __init__(self, expected: int | None, got: int) -> None:
        super().__init__(f"routing version {got} cannot follow version {expected}")
        self.expected = expected
        self.got = got


class RoutingMissing(WireError):
    """The routing table of a version cannot be rebuilt: a part is missing or unreadable."""

    def __init__(self, cluster: str, version: int) -> None:
        super().__init__(f"routing table {version} of cluster {cluster!r} is not whole in Redis")


class RoutingTaken(WireError):
    """A routing version was published before, with other contents."""

    def __init__(self, cluster: str, version: int) -> None:
        super().__init__(f"version {version} of {cluster} was published with other contents")


class InconsistentDelta(WireError):
    """A delta names a query that the table does not have, or adds one that it has."""


def cause_line(lines: Sequence[str]) -> str:
    """Return the last line with an error, else the last line, else ""; without secrets.

    The end of a Python traceback has an error whatever its class is called. Its begin has none:
    Spark writes the traceback of a Python worker into its own error.
    """
    result, in_traceback = (lines or [""])[-1], False
    for line in (line.removeprefix(CONTINUED) for line in lines):
        if _TRACEBACK in line:
            in_traceback = True
        elif not (in_traceback and line[:1].isspace()):
            if in_traceback or (_ERROR.search(line) and not _JAVA_FRAME.match(line)):
                result = line
            in_traceback = False
    return without_password(_OWN.sub("", result.strip()))
