"""A text for tests of what does not depend on the text: the numbers of one column by stream."""

import json
from typing import Any, Final

import redis

from controlplane.wire.aggregates.finalize import WindowRow
from controlplane.wire.query import computation_of
from controlplane.wire.query_text import QueryText
from tests.support.schemas import REPORTS
from tests.support.whole_results import read_windows

SUMMARY: Final = QueryText(
    {
        "count": "count(*)",
        "n": "count(speed)",
        "mean": "mean(speed)",
        "minimum": "min(speed)",
        "maximum": "max(speed)",
    },
    key=["stream"],
)
# The same as bodies of the API and as the routing table have it.
SUMMARY_JSON: Final[dict[str, Any]] = SUMMARY.to_json()
SUMMARY_TEXT: Final = json.dumps(SUMMARY_JSON, separators=(",", ":"))


def read_summaries(client: "redis.Redis", cluster: str, query: int) -> list[WindowRow]:
    """Return all windows of a query with this text, newest first, streams in order."""
    found = read_windows(client, cluster, query, computation_of(SUMMARY, REPORTS.kinds))
    return sorted(found, key=lambda row: (-row.start_ms, row.key["stream"]))
