"""Previews: the newest records of the streams, through the engine, without any change."""

import time
from typing import Any

import pytest

from controlplane.access.roles import Actor
from controlplane.errors import Away, Conflict, Invalid
from controlplane.explain.drafts import preview as previews
from controlplane.explain.drafts.preview import cancel, preview
from controlplane.models import Cluster, Query
from controlplane.processes.isolation import limits
from controlplane.queries.spec import QuerySpec
from controlplane.wire.errors import LogUnavailable
from controlplane.wire.query_text import QueryText
from tests.support import cluster as made
from tests.support.records import append_at
from workers.pipeline.engine.failures.fault import FaultReason
from workers.preview import service
from workers.preview.evaluation import QueryFailed


def spec(streams: tuple[str, ...] = ("s0", "s1"), **text: Any) -> QuerySpec:
    values = {"aggregates": {"n": "count(*)", "fast": "max(speed)"}, "key": ("stream",)} | text
    return QuerySpec("", streams, QueryText(**values))


def test_a_preview_has_the_windows_of_the_newest_records(
    by: Actor, cluster: Cluster, worker: list[str]
) -> None:
    """With the names of streams, newest first; nothing is stored."""
    result = preview(by, cluster, spec())
    assert [window.start.minute for window in result.windows] == [48, 47, 46, 46]
    assert {window.key["stream"] for window in result.windows[2:]} == {"s0", "s1"}
    assert all(window.values == {"n": 1, "fast": 5} for window in result.windows)
    assert [(s.name, s.records) for s in result.streams] == [("s0", 3), ("s1", 1)]
    assert (result.records, result.window_count, result.late, result.rejected) == (4, 4, 0, 0)
    assert not result.is_partial
    assert result.took_ms > 0
    assert not Query.objects.exists()


def test_late_records_and_records_left_out_by_where_are_not_in_windows(
    by: Actor, cluster: Cluster, worker: list[str]
) -> None:
    append_at(cluster, made.stream_id(cluster, "s0"), 999_999_000_000, records=1)
    assert preview(by, cluster, spec(("s0",), lateness_s=10.0)).late == 1
    empty = preview(by, cluster, spec(where="speed > 5"))
    assert (empty.windows, empty.records) == ([], 5)


def test_a_join_is_previewed(by: Actor, cluster: Cluster, worker: list[str]) -> None:
    text = QueryText({"n": "count(*)"}, key=("a.car",), on=[["car", "car"]])
    result = preview(by, cluster, QuerySpec("", ("s0",), text, right=("s1",)))
    assert [(w.start.minute, w.key, w.values) for w in result.windows] == [
        (46, {"a.car": 1}, {"n": 1})
    ]


def test_faults_are_reported_by_field_and_code(
    by: Actor, cluster: Cluster, worker: list[str]
) -> None:
    with pytest.raises(Invalid) as refusal:
        preview(by, cluster, spec(where="spede > 3"))
    assert set(refusal.value.fields) == {"text.where"}
    with pytest.raises(Invalid) as refusal:
        preview(by, cluster, spec(()))
    assert set(refusal.value.fields) == {"streams"}
    with pytest.raises(Conflict) as conflict:
        preview(by, cluster, spec(("s2",)))
    assert conflict.value.code == "no_records"
    assert worker, "the worker looked for them"


def test_a_preview_is_cancelled_by_its_user(
    by: Actor, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And a newer one of the same user ends it; a worker skips it."""
    bodies: list[str] = []

    def send(_: str, body: str, **__: Any) -> None:
        bodies.append(body)
        cancel(by, cluster)

    monkeypatch.setattr(previews, "send_on_commit", send)
    with pytest.raises(Conflict) as conflict:
        preview(by, cluster, spec())
    assert conflict.value.code == "cancelled"
    monkeypatch.setattr(service, "answer", pytest.fail)
    service.run(bodies[0])


def test_no_worker_and_no_log_are_reported(
    by: Actor, cluster: Cluster, monkeypatch: pytest.MonkeyPatch, worker: list[str]
) -> None:
    def fail(*_: Any) -> None:
        raise LogUnavailable("it is closed")

    monkeypatch.setattr(service, "read_newest", fail)
    with pytest.raises(Away) as away:
        preview(by, cluster, spec())
    assert away.value.code == "log_away"
    monkeypatch.setattr(previews, "send_on_commit", lambda *_, **__: None)
    monkeypatch.setattr(previews, "WAIT_S", 0.05)
    with pytest.raises(Away) as away:
        preview(by, cluster, spec())
    assert away.value.code == "preview_away"


def test_a_preview_that_takes_too_long_ends(
    by: Actor, cluster: Cluster, monkeypatch: pytest.MonkeyPatch, worker: list[str]
) -> None:
    monkeypatch.setattr(service, "evaluate", lambda *_: time.sleep(60))
    monkeypatch.setattr(limits, "PREVIEW_S", 0.2)
    with pytest.raises(Conflict) as conflict:
        preview(by, cluster, spec())
    assert conflict.value.code == "out_of_time"


def test_a_query_that_the_engine_cannot_compute_has_its_fault(
    by: Actor, cluster: Cluster, worker: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        raise QueryFailed(FaultReason("Overflow: too large", "aggregate"))

    monkeypatch.setattr(service, "evaluate", fail)
    with pytest.raises(Conflict) as conflict:
        preview(by, cluster, spec())
    assert (conflict.value.code, conflict.value.data) == ("query_failed", {"stage": "aggregate"})
