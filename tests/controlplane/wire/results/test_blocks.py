"""Windows in blocks are read like those with rows of their own, and shared by queries."""

from collections.abc import Sequence
from typing import Any

import pytest
import redis

from controlplane.wire import keys
from controlplane.wire.results import final_windows
from controlplane.wire.results.blocks import Ref, encode_tables, put
from controlplane.wire.results.places import place_of
from controlplane.wire.results.read import Range, read_page, read_places
from controlplane.wire.results.write import References, WindowChanges, write
from tests.support.stored import HOUR_MS, changes, computed
from tests.support.whole_results import pages, read_windows

METERS = computed()
NO_AGGREGATOR = WindowChanges([])


def tables(rows: Sequence[dict[str, Any]]) -> list[Any]:
    """Return rows of slots as a block has them."""
    from controlplane.wire.aggregates.state_schema import schema_named  # noqa: PLC0415

    return [(name, schema_named(name), table) for name, table in changes(METERS, 9, rows).tables]


def give(
    client: "redis.Redis",
    batch: int,
    rows: Sequence[dict[str, Any]],
    queries: Sequence[int] = (9,),
    incarnation: int = 0,
    own: Sequence[dict[str, Any]] = (),
) -> bytes:
    """Write a block for some queries, and rows of their own of the first; return its name."""
    (name,) = put(client, "c", [encode_tables(tables(rows))])
    starts = [row["pane"] for row in rows]
    ref = Ref(name, min(starts), max(starts), len(rows), incarnation, batch)
    mine = changes(METERS, queries[0], own) if own else NO_AGGREGATOR
    write(client, "c", batch, mine, blocks=References({query: [ref] for query in queries}))
    return name


def hours(first: int, stop: int, *meters: str, count: int = 1) -> list[dict[str, Any]]:
    return [
        {"pane": hour * HOUR_MS, "k0": meter, "s0": count}
        for hour in range(first, stop)
        for meter in meters
    ]


def totals(client: "redis.Redis", query: int = 9) -> dict[tuple[int, Any], int]:
    windows = read_windows(client, "c", query, METERS)
    return {(row.start_ms // HOUR_MS, row.key["meter"]): row.values["n"] for row in windows}


@pytest.mark.parametrize("newest_first", [False, True])
def test_pages_go_through_rows_and_blocks_in_one_order(
    redis_client: "redis.Redis", *, newest_first: bool
) -> None:
    """Each window once, its parts from wherever they are; blocks overlap, some hold one start."""
    parts = [{"pane": hour * HOUR_MS, "k0": "both", "s0": 2, "stream": 7} for hour in range(30)]
    give(redis_client, 1, hours(0, 40, "a", "b"), own=parts)
    give(redis_client, 2, hours(10, 60, "c"))
    give(redis_client, 3, [{**row, "stream": 8, "s0": 1} for row in parts])
    for at in range(20):
        give(redis_client, 4, hours(50, 51, f"k{at}"))
    found = list(pages(redis_client, "c", 9, METERS, Range(limit=7, newest_first=newest_first)))
    places = [window.place for page in found for window in page.windows]
    assert places == sorted(set(places), reverse=newest_first)
    assert max(len(page.windows) for page in found) == 7
    expected = dict.fromkeys([(hour, key) for hour in range(40) for key in "ab"], 1)
    expected |= {(hour, "both"): 3 for hour in range(30)} | {(h, "c"): 1 for h in range(10, 60)}
    expected |= {(50, f"k{at}"): 1 for at in range(20)}
    assert totals(redis_client) == expected


def test_a_range_and_a_key_in_blocks(redis_client: "redis.Redis") -> None:
    give(redis_client, 1, hours(0, 100, "a", "b", "c"))
    wanted = Range(10 * HOUR_MS, 20 * HOUR_MS, ("b",), limit=100)
    page = read_page(redis_client, "c", 9, METERS, wanted)
    assert [(w.row.start_ms // HOUR_MS, w.row.key["meter"]) for w in page.windows] == [
        (hour, "b") for hour in range(20, 9, -1)
    ]
    assert page.next == b""


def test_windows_at_places_are_found_in_blocks_too(redis_client: "redis.Redis") -> None:
    give(redis_client, 1, hours(0, 5, "a", "b"), own=hours(7, 8, "a"))
    everything = read_page(redis_client, "c", 9, METERS, Range()).windows
    wanted = [one.place for one in everything[::2]]
    page = read_places(redis_client, "c", 9, METERS, wanted)
    assert sorted(one.place for one in page.windows) == sorted(wanted)


def test_queries_share_a_block_until_the_last_has_let_go(redis_client: "redis.Redis") -> None:
    """Each reads it as its own, with its run; a replay writes nothing twice."""
    rows = hours(0, 3, "a")
    name = give(redis_client, 5, rows, (9, 10, 11))
    assert give(redis_client, 5, rows, (9, 10, 11)) == name
    block = keys.block_key("c", name)
    assert redis_client.hget(block, "refs") == b"3"
    assert redis_client.ttl(block) == -1
    assert totals(redis_client, 9) == totals(redis_client, 11) == {(h, "a"): 1 for h in range(3)}
    assert final_windows.stored_queries(redis_client, "c") == [9, 10, 11]
    for query in (9, 10):
        final_windows.drop(redis_client, "c", query)
    assert totals(redis_client, 11) == {(hour, "a"): 1 for hour in range(3)}
    final_windows.release(redis_client, "c", 11)
    assert not redis_client.exists(block)
    assert final_windows.stored_queries(redis_client, "c") == []


def test_a_block_that_nobody_refers_to_goes_by_itself(redis_client: "redis.Redis") -> None:
    """Its writer was killed before the references were written."""
    (name,) = put(redis_client, "c", [encode_tables(tables(hours(0, 1, "a")))])
    assert 0 < redis_client.ttl(keys.block_key("c", name)) <= 3_600


def test_of_a_part_in_rows_and_in_a_block_the_newer_counts(redis_client: "redis.Redis") -> None:
    write(redis_client, "c", 2, changes(METERS, 9, hours(0, 1, "a", count=1)))
    give(redis_client, 3, hours(0, 2, "a", count=5))
    assert totals(redis_client) == {(0, "a"): 5, (1, "a"): 5}
    write(redis_client, "c", 4, changes(METERS, 9, hours(1, 2, "a", count=8)))
    assert totals(redis_client) == {(0, "a"): 5, (1, "a"): 8}


def test_two_runs_of_a_query_are_two_parts(redis_client: "redis.Redis") -> None:
    give(redis_client, 1, hours(0, 1, "a"))
    give(redis_client, 2, hours(0, 1, "a", count=2), incarnation=1)
    assert totals(redis_client) == {(0, "a"): 3}


def test_final_windows_take_no_change_from_a_block(redis_client: "redis.Redis") -> None:
    """A block that comes late adds only what starts behind them."""
    give(redis_client, 1, hours(0, 4, "a"))
    assert final_windows.freeze(redis_client, "c", {9: HOUR_MS}, 5_000) == {9: 1}
    give(redis_client, 2, hours(0, 4, "late"))
    give(redis_client, 3, hours(0, 2, "too late"))
    page = read_page(redis_client, "c", 9, METERS, Range(newest_first=False))
    seen = [(w.row.start_ms // HOUR_MS, w.row.key["meter"]) for w in page.windows]
    assert seen == [(0, "a"), (1, "a"), (2, "a"), (2, "late"), (3, "a"), (3, "late")]
    assert redis_client.hget(keys.rows_key("c", 9), "ignored") == b"1"


def test_a_block_leaves_window_by_window(redis_client: "redis.Redis") -> None:
    """What has left is not read any more, and the rest can become final later."""
    name = give(redis_client, 1, hours(0, 4, "a", "b"))
    final_windows.freeze(redis_client, "c", {9: HOUR_MS}, 5_000)
    first = read_page(redis_client, "c", 9, METERS, Range(limit=3, newest_first=False)).windows
    final_windows.remove_all(redis_client, "c", {9: ((), first[-1].place)})
    assert final_windows.freeze(redis_client, "c", {9: 2 * HOUR_MS}, 6_000) == {
        9: final_windows.BEHIND
    }
    assert len(totals(redis_client)) == 5
    final_windows.release(redis_client, "c", 9, HOUR_MS)
    assert sorted(totals(redis_client)) == [(2, "a"), (2, "b"), (3, "a"), (3, "b")]
    assert final_windows.freeze(redis_client, "c", {9: 2 * HOUR_MS}, 6_000) == {9: 1}
    final_windows.freeze(redis_client, "c", {9: 9 * HOUR_MS}, 7_000)
    final_windows.release(redis_client, "c", 9, 9 * HOUR_MS)
    assert not redis_client.exists(keys.block_key("c", name), keys.blocks_key("c", 9))


def test_what_blocks_hold_counts_for_retention(redis_client: "redis.Redis") -> None:
    give(redis_client, 1, hours(3, 8, "a", "b"), own=hours(20, 22, "a"))
    assert final_windows.extent(redis_client, "c", [9, 10]) == {9: (12, 3 * HOUR_MS, 21 * HOUR_MS)}
    assert final_windows.start_behind(redis_client, "c", 9, 4) == 7 * HOUR_MS
    assert final_windows.start_behind(redis_client, "c", 9, 11) == 20 * HOUR_MS
    assert final_windows.start_behind(redis_client, "c", 9, 99) is None


def test_large_blocks_are_read_one_after_the_other(
    redis_client: "redis.Redis", monkeypatch: pytest.MonkeyPatch
) -> None:
    """A page takes as many as its bytes allow, and goes on behind them; none is lost."""
    from controlplane.wire.results import read  # noqa: PLC0415

    monkeypatch.setattr(read, "MAX_BYTES", 1)
    for at in range(6):
        give(redis_client, at, hours(at * 5, at * 5 + 7, f"k{at}"))
    give(redis_client, 9, hours(0, 30, "long"))
    for newest_first in (False, True):
        found = list(pages(redis_client, "c", 9, METERS, Range(newest_first=newest_first)))
        places = [window.place for page in found for window in page.windows]
        assert places == sorted(set(places), reverse=newest_first)
        assert len(places) == 6 * 7 + 30
        assert len(found) > 3
    assert {place_of(place + b"\0" * 16) for place in places} == set(places)
