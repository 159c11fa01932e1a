"""What can go wrong on the wire, with the numbers in it."""


class WireError(Exception):
    """Base of everything the wire raises."""


class LogFull(WireError):
    """The log holds more records than the pipeline has read; the producer must slow down."""

    def __init__(self, waiting: int, limit: int) -> None:
        super().__init__(
            f"the log holds {waiting:,} records that the pipeline has not read "
            f"(limit {limit:,}): retry later, or start the cluster"
        )
        self.waiting = waiting
        self.limit = limit


class BadBlock(WireError):
    """A block of records does not have the schema of its stream."""

    def __init__(self, stream: int, why: str) -> None:
        super().__init__(f"stream {stream}: {why}")
        self.stream = stream
        self.why = why


class RoutingGap(WireError):
    """A routing delta was published out of order."""

    def __init__(self, expected: int | None, got: int) -> None:
        super().__init__(f"routing version {got} cannot follow version {expected}")
        self.expected = expected
        self.got = got


class RoutingMissing(WireError):
    """The routing table of a version cannot be rebuilt: a delta or its snapshot is gone."""

    def __init__(self, cluster: str, version: int) -> None:
        super().__init__(f"routing table {version} of cluster {cluster!r} is not in Redis")
        self.cluster = cluster
        self.version = version


class InconsistentDelta(WireError):
    """A delta names a query that the table does not have (or has already)."""
