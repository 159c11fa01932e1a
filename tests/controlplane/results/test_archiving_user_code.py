"""Archiving where users' code hangs, raises or is gone: other queries and Redis do not suffer."""

from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any

import pyarrow as pa
import pytest
from django.utils import timezone

from controlplane.access.roles import Actor
from controlplane.catalog.computations import computation_of_query
from controlplane.connections import redis_client
from controlplane.models import AuditEntry, Cluster, Query
from controlplane.queries.spec import QuerySpec
from controlplane.results import archiving
from controlplane.results.archive import windows as archive
from controlplane.results.archive.values import Raised
from controlplane.results.archive.windows import WindowRange
from controlplane.topology import queries
from controlplane.wire import keys, limits
from controlplane.wire.aggregates import user_results
from controlplane.wire.aggregates.layout import layout_of
from controlplane.wire.aggregates.state_schema import PLACE, schema_named, schema_names
from controlplane.wire.query_text import QueryText
from controlplane.wire.results import final_windows, watermarks
from controlplane.wire.results.write import WindowChanges, write
from tests.controlplane.wire.aggregates.test_user_results import NAME
from tests.support.windows import write_windows

MINUTE = 60_000
COUNTS = QueryText({"n": "count(*)"})
USERS = QueryText({"n": "count(*)", "job": f"{NAME}(car)"})


@pytest.fixture(autouse=True)
def anew(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """As in a process that has just begun, with a short limit of calls."""
    monkeypatch.setenv(limits.CALL_SECONDS, "1")
    limits.call_seconds.cache_clear()
    archiving._STATES.clear()
    user_results._LIMITS.clear()
    yield
    limits.call_seconds.cache_clear()
    archiving._STATES.clear()
    user_results._LIMITS.clear()


def submit(operator: Actor, sf: Cluster, name: str, text: QueryText) -> Query:
    return queries.submit(operator, sf, QuerySpec(name, ("s0",), text))


def fill(query: Query, states: Mapping[int, bytes]) -> None:
    """Write windows by minute with the state of the user's aggregate, and let all be final."""
    slots, _, blobs = schema_names(layout_of(computation_of_query(query)))
    places = [dict.fromkeys(PLACE, 0) | {"query": query.pk, "pane": at * MINUTE} for at in states]
    counts = [place | {"s0": 1} for place in places]
    jobs = [place | {"a": 1, "state": state}
            for place, state in zip(places, states.values(), strict=True)]  # fmt: skip
    tables = [(slots, _table(slots, counts)), (blobs, _table(blobs, jobs))]
    write(redis_client(), "sf", 1, WindowChanges(tables), frozenset())


def _table(name: str, rows: list[dict[str, Any]]) -> Any:
    return pa.Table.from_pylist(rows, schema_named(name).arrow)


def let_all_be_final(*several: Query) -> None:
    times = {stream.pk: 1000 * MINUTE for query in several for stream in query.streams.all()}
    watermarks.commit(redis_client(), "sf", 2, 2000, 0, times)


def passed(times: int = 1) -> int:
    return sum(archiving.archive_windows(timezone.now()) for _ in range(times))


def archived(query: Query) -> dict[int, Any]:
    """Return what the archive has as the last value of each window, by minute."""
    found = archive.read(WindowRange(query.pk, newest_first=False))
    return {one.start_ms // MINUTE: one.values[-1] for one in found}


def test_a_result_that_hangs_holds_up_no_other_query(operator: Actor, sf: Cluster) -> None:
    """Each pass archives what others have, and gets on with what it can of this one."""
    hangs, counts = (submit(operator, sf, *one) for one in (("hangs", USERS), ("counts", COUNTS)))
    fill(hangs, {0: b"hang", 1: b"abc", 2: b"raise", 3: b"hang", 4: b"ab"})
    write_windows(counts, 1, [{"pane": at * MINUTE, "s0": at} for at in range(5)])
    let_all_be_final(hangs, counts)
    passed(2)
    assert archived(counts) == {at: at for at in range(5)}
    passed(4)
    found = archived(hangs)
    errors = {at: one.error for at, one in found.items() if isinstance(one, Raised)}
    assert {at: one for at, one in found.items() if at not in errors} == {1: 3, 4: 2}
    assert errors[0] == f"{NAME} took longer than 1 s"
    assert errors[2] == f"{NAME} raised ValueError: it is odd"
    assert errors[3].startswith(f"{NAME} took longer than ")
    assert not redis_client().exists(keys.windows_key("sf", hangs.pk))


def test_what_is_beyond_the_retention_leaves_redis_with_the_reason(
    operator: Actor, sf: Cluster
) -> None:
    """Redis is bounded, however slow a result is: its windows are archived without it."""
    hangs = submit(operator, sf, "hangs", USERS)
    Query.objects.filter(pk=hangs.pk).update(retention_windows=10)
    fill(hangs, dict.fromkeys(range(40), b"hang"))
    let_all_be_final(hangs)
    passed()
    assert redis_client().zcard(keys.windows_key("sf", hangs.pk)) == 0
    reasons = {one.error for one in archived(hangs).values()}
    assert any("no time was left" in why for why in reasons)


@pytest.fixture
def unreadable(operator: Actor, sf: Cluster) -> Query:
    """A query with forty windows, whose function was then removed from the site's modules."""
    query = submit(operator, sf, "orphan", USERS)
    fill(query, dict.fromkeys(range(40), b"a"))
    text = Query.objects.get(pk=query.pk).text.replace(NAME, "no_such_function")
    Query.objects.filter(pk=query.pk).update(text=text)
    let_all_be_final(query)
    return Query.objects.get(pk=query.pk)


def test_windows_that_cannot_be_computed_wait_for_their_function(unreadable: Query) -> None:
    passed(2)
    assert redis_client().zcard(keys.windows_key("sf", unreadable.pk)) == 40
    text = unreadable.text.replace("no_such_function", NAME)
    Query.objects.filter(pk=unreadable.pk).update(text=text)
    archiving._STATES.clear()
    passed(2)
    assert archived(unreadable) == dict.fromkeys(range(40), 1)


@pytest.mark.parametrize(
    ("kept", "left"), [({"retention_windows": 10}, 10), ({"retention_s": 600}, 10)]
)
def test_they_wait_no_longer_than_their_query_keeps_any(
    unreadable: Query, kept: Mapping[str, int], left: int
) -> None:
    """By number and by event time; dropping them is on record once."""
    Query.objects.filter(pk=unreadable.pk).update(**kept)
    passed(3)
    assert redis_client().zcard(keys.windows_key("sf", unreadable.pk)) == left
    entry = AuditEntry.objects.get(action="query.drop-windows")
    assert (entry.actor, entry.object, entry.after) == ("archiver", "orphan", {"rows": 40 - left})
    assert archived(unreadable) == {}


def test_after_its_end_they_wait_for_its_retention(unreadable: Query) -> None:
    ended_at = timezone.now() - timedelta(hours=2)
    Query.objects.filter(pk=unreadable.pk).update(
        state="ended", ended_at=ended_at, retention_s=3 * 3600
    )
    passed(2)
    assert redis_client().zcard(keys.windows_key("sf", unreadable.pk)) == 40
    Query.objects.filter(pk=unreadable.pk).update(retention_s=3600)
    passed(2)
    assert not redis_client().exists(keys.windows_key("sf", unreadable.pk))
    assert final_windows.stored_queries(redis_client(), "sf") == []
    assert AuditEntry.objects.get(action="query.drop-windows").after == {"rows": 40}
