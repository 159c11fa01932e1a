"""A preview through the broker: requested here, computed by a worker."""

import pytest

from controlplane.explain.drafts import preview as previews
from controlplane.processes.isolation import limits
from controlplane.queries.spec import QuerySpec
from controlplane.wire.query_text import QueryText
from tests.support import cluster as made
from tests.support.records import append_at


def test_a_worker_computes_a_requested_preview(
    celery_worker: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "PREVIEW_S", 60.0)
    monkeypatch.setattr(previews, "WAIT_S", 60.0)
    previews._waiting_client.cache_clear()
    by = made.actor("operator")
    cluster = made.small_cluster(by)
    append_at(cluster, made.stream_id(cluster, "s0"), 1_000_000, records=1)
    result = previews.preview(by, cluster, QuerySpec("", ("s0",), QueryText({"n": "count(*)"})))
    assert [window.values for window in result.windows] == [{"n": 1}]
