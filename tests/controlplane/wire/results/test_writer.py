"""The rows of results: guarded by batches, ordered by changes, merged from parts."""

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from controlplane.wire.aggregates.layout import layout_of
from controlplane.wire.aggregates.sampling import sample_cells
from controlplane.wire.aggregates.state_schema import schema_named, schema_names
from controlplane.wire.language.tree import Kind
from controlplane.wire.query import Computation, computation_of
from controlplane.wire.query_text import QueryText
from controlplane.wire.results.database import ConnectedDatabase
from controlplane.wire.results.finalized import ResultQuery
from controlplane.wire.results.json_values import from_json
from controlplane.wire.results.tables import TABLES, EarlierTable, create_tables
from controlplane.wire.results.writer import WindowWriter
from tests.support.stored import BY_METER, COLUMNS, HOUR_MS, Changes, changes, computed

METERS = computed()
Row = dict[str, Any]


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The URL of a database of each kind."""
    if request.param == "postgresql":
        return str(request.getfixturevalue("postgres_server"))
    return f"sqlite:///{tmp_path_factory.mktemp('results') / 'results.sqlite3'}"


@pytest.fixture
def database(url: str) -> Iterator[ConnectedDatabase]:
    """An empty database of results."""
    database = ConnectedDatabase(url)
    database.run(lambda cursor: create_tables(cursor, is_postgres=database.is_postgres))

    def clear(cursor: Any) -> None:
        for table in TABLES:
            cursor.execute(f"DELETE FROM {table}")

    database.run(clear)
    yield database
    database.close()


def write(
    database: ConnectedDatabase,
    batch: int,
    changed: Changes,
    computation: Computation = METERS,
    streams: int = 1,
    incarnation: int = 0,
) -> None:
    """Write changes of any queries with one computation."""
    query = ResultQuery.of(computation, streams, incarnation)

    def queries(wanted: Collection[int]) -> dict[int, ResultQuery]:
        return dict.fromkeys(wanted, query)

    writer = WindowWriter(database, "c")
    writer.take(batch, changed, queries)
    writer.flush()


def rows(*counts: Row) -> Changes:
    """Return windows of query 9."""
    return changes(METERS, 9, counts)


def meter(name: str, count: int, hour: int = 0, **more: int) -> Row:
    return {"pane": hour * HOUR_MS, "k0": name, "s0": count, "s1": count, "s2": 10 * count, **more}


def stored(database: ConnectedDatabase, query: int = 9) -> list[tuple[Any, ...]]:
    """Return start (hours), key, values, batch and seq of all windows in their order."""
    found = database.run(
        lambda cursor: cursor.execute(
            "SELECT start_ms, key_json, value_json, batch, seq FROM results_window"
            f" WHERE query_id = {query} ORDER BY start_ms, key"
        ).fetchall()
    )
    return [(start // HOUR_MS, *from_json(key), from_json(values), batch, seq)
            for start, key, values, batch, seq in found]  # fmt: skip


def test_a_window_is_a_row_in_the_order_of_starts_and_keys(database: ConnectedDatabase) -> None:
    write(database, 1, rows(meter("b", 2), meter("a", 1), meter("a", 3, hour=-1)))
    assert stored(database) == [
        (-1, "a", [3, 30], 1, 3), (0, "a", [1, 10], 1, 2), (0, "b", [2, 20], 1, 1),
    ]  # fmt: skip


def test_an_older_batch_replaces_nothing_and_a_repeated_one_changes_nothing(
    database: ConnectedDatabase,
) -> None:
    first, second = rows(meter("a", 1), meter("b", 1)), rows(meter("a", 2))
    write(database, 1, first)
    write(database, 2, second)
    once = stored(database)
    for batch, changed in ((1, first), (2, second), (1, first)):
        write(database, batch, changed)
    assert stored(database) == once
    assert [row[3:] for row in once] == [(2, 3), (1, 2)]


def test_seq_grows_with_changes_of_values_only(database: ConnectedDatabase) -> None:
    """A window that is written again as it was has its batch, but is not in the change feed."""
    write(database, 1, rows(meter("a", 1)))
    write(database, 5, rows(meter("a", 1)))
    assert stored(database) == [(0, "a", [1, 10], 5, 1)]
    write(database, 4, rows(meter("a", 7)))
    assert stored(database) == [(0, "a", [1, 10], 5, 1)]


def test_final_windows_are_corrected_unless_they_were_deleted(database: ConnectedDatabase) -> None:
    """A row would lack the records that it had before."""
    write(database, 1, rows(meter("a", 1), meter("a", 1, hour=1)))
    database.run(lambda cursor: cursor.execute(f"UPDATE results_query SET final_ms = {HOUR_MS}"))
    write(database, 2, rows(meter("a", 9), meter("b", 9, hour=1), meter("a", 9, hour=2)))
    assert stored(database) == [
        (0, "a", [9, 90], 2, 3), (1, "a", [1, 10], 1, 2), (1, "b", [9, 90], 2, 4),
        (2, "a", [9, 90], 2, 5),
    ]  # fmt: skip
    deleted = f"INSERT INTO results_deleted VALUES (9, {HOUR_MS})"
    database.run(lambda cursor: cursor.execute(deleted))
    write(database, 3, rows(meter("b", 8), meter("a", 8), meter("c", 8, hour=1)))
    assert [row[:3] for row in stored(database)] == [
        (0, "a", [8, 80]), (1, "a", [1, 10]), (1, "b", [9, 90]), (2, "a", [9, 90]),
    ]  # fmt: skip
    database.run(lambda cursor: cursor.execute("UPDATE results_query SET is_closed = TRUE"))
    write(database, 4, rows(meter("a", 1, hour=3)))
    assert len(stored(database)) == 4


def test_parts_of_streams_and_incarnations_add_up(database: ConnectedDatabase) -> None:
    """In any order, also again; a part replaces what it wrote before."""
    write(database, 1, rows(meter("a", 1, stream=1), meter("a", 2, stream=2)), streams=2)
    write(database, 2, rows(meter("a", 4, stream=2)), streams=2)
    assert stored(database)[0][2] == [5, 50]
    for _ in range(2):
        write(database, 3, rows(meter("a", 10, stream=1, run=1)), streams=2, incarnation=1)
    assert stored(database) == [(0, "a", [15, 150], 3, 3)]


def test_a_new_incarnation_of_one_stream_adds_to_plain_rows(database: ConnectedDatabase) -> None:
    write(database, 1, rows(meter("a", 1), meter("b", 1)))
    write(database, 2, rows(meter("a", 2, run=1)), incarnation=1)
    assert [row[2] for row in stored(database)] == [[3, 30], [1, 10]]


def test_a_column_that_became_wider_adds_to_plain_rows(database: ConnectedDatabase) -> None:
    """A plain row has the accumulators of its time, which its batch named."""
    write(database, 1, rows(meter("a", 1)))
    wider = computation_of(BY_METER, {**COLUMNS, "volts": Kind.FLOAT})
    changed = changes(wider, 9, [meter("a", 4, run=1)])
    write(database, 2, changed, wider, incarnation=1)
    assert stored(database)[0][2] == [5, 50.0]


def test_equal_windows_name_their_accumulators_for_a_wider_column(
    database: ConnectedDatabase,
) -> None:
    queries = {5: ResultQuery(METERS, is_merged=False), 6: ResultQuery(METERS, is_merged=False)}
    writer = WindowWriter(database, "c")
    writer.take_shared(1, [(5, 0), (6, 0)], rows(meter("a", 1)), lambda _: queries)
    writer.flush()
    wider = computation_of(BY_METER, {**COLUMNS, "volts": Kind.FLOAT})
    write(database, 2, changes(wider, 6, [meter("a", 4, run=1)]), wider, incarnation=1)
    assert stored(database, 6)[0][2] == [5, 50.0]


def test_a_part_as_long_as_two_stored_ones_replaces_its_own_only(
    database: ConnectedDatabase,
) -> None:
    """Texts have any length."""
    greatest = computed(QueryText({"n": "count(*)", "most": "max(meter)"}, 3600.0))

    def part(text: str, count: int, stream: int) -> Changes:
        name = schema_names(layout_of(greatest))[0]
        texts = [f.name for f in schema_named(name).arrow if pa.types.is_string(f.type)]
        row = {"s0": count, "stream": stream, **dict.fromkeys(texts, text)}
        return changes(greatest, 9, [row])

    def state() -> bytes:
        select = "SELECT state FROM results_window"
        return bytes(database.run(lambda cursor: cursor.execute(select).fetchone())[0])

    write(database, 1, part("x", 1, stream=1), greatest, streams=2)
    one = len(state())
    write(database, 2, part("y", 5, stream=2), greatest, streams=2)
    longer = "x" * (1 + len(state()) - one)
    write(database, 3, part(longer, 2, stream=1), greatest, streams=2)
    assert stored(database)[0][1] == [7, "y"]


def test_a_negative_count_deletes_a_part(database: ConnectedDatabase) -> None:
    write(database, 1, rows(meter("a", 1), meter("b", 1)))
    write(database, 2, rows(meter("a", -1)))
    assert [row[1] for row in stored(database)] == ["b"]
    both = rows(meter("c", 1, stream=1), meter("c", 2, stream=2))
    write(database, 3, both, streams=2)
    write(database, 4, rows(meter("c", -1, stream=1)), streams=2)
    assert [row[1:3] for row in stored(database)] == [("b", [1, 10]), ("c", [2, 20])]
    write(database, 5, rows(meter("c", -1, stream=2)), streams=2)
    assert [row[1] for row in stored(database)] == ["b"]


def test_cells_of_sketches_stay_where_only_slots_change(database: ConnectedDatabase) -> None:
    computation = computed(
        QueryText({"n": "count(*)", "d": "count_distinct(volts)"}, 3600.0, key=("meter",))
    )
    _, cells, _ = schema_names(layout_of(computation))
    window = {"pane": 0, "k0": "a"}
    slots = changes(computation, 9, [window | {"s0": 2}])
    place = {"query": 9, "run": 0, "task": 0, "stream": 0, **window}
    form = schema_named(cells).arrow
    some = [{**place, "a": 1, "c": cell, "t": None, "added": 1, "largest": None}
            for cell in (4, 7)]  # fmt: skip
    write(database, 1, [*slots, (cells, pa.Table.from_pylist(some, form))], computation)
    before = stored(database)[0][2]
    write(database, 2, changes(computation, 9, [window | {"s0": 3}]), computation)
    assert stored(database)[0][2] == [3, before[1]]


def test_the_sample_of_a_window_stays_where_later_records_are_all_kept(
    database: ConnectedDatabase,
) -> None:
    cells = schema_names(layout_of(METERS))[1]
    form = schema_named(cells).arrow
    slots = rows(meter("a", 4))
    places = slots[0][1].select([n for n in form.names if n in slots[0][1].column_names])
    sample = sample_cells(places.take(pa.array([0] * 4)), np.full(4, 0.5)).select(form.names)
    write(database, 1, [*slots, (cells, sample)])
    write(database, 2, rows(meter("a", 6)))
    (found,) = database.run(
        lambda cursor: cursor.execute("SELECT records, sample FROM results_window").fetchall()
    )
    assert found == (6, "[4.0, 8.0]")


def test_queries_with_equal_windows_share_their_computation(database: ConnectedDatabase) -> None:
    queries = {5: ResultQuery(METERS, is_merged=False), 6: ResultQuery(METERS, is_merged=True)}
    writer = WindowWriter(database, "c")
    recipients = [(5, 0), (6, 1), (7, 0)]
    writer.take_shared(1, recipients, rows(meter("a", 1)), lambda _: queries)
    writer.flush()
    assert [stored(database, query) for query in (5, 6, 7)] == [
        [(0, "a", [1, 10], 1, 1)], [(0, "a", [1, 10], 1, 2)], [],
    ]  # fmt: skip


def test_windows_far_apart_are_all_kept(database: ConnectedDatabase) -> None:
    """More days than PostgreSQL has partitions for."""
    hours = [24 * 40 * day for day in range(-250, 250)]
    write(database, 1, rows(*(meter("a", 1, hour=hour) for hour in hours)))
    write(database, 2, rows(*(meter("a", 2, hour=hour + 1) for hour in hours)))
    assert [row[0] for row in stored(database)] == sorted([*hours, *(hour + 1 for hour in hours)])


def test_a_table_of_an_earlier_version_is_named(database: ConnectedDatabase) -> None:
    def create(cursor: Any) -> None:
        cursor.execute("ALTER TABLE results_schema RENAME COLUMN name TO former")
        create_tables(cursor, is_postgres=database.is_postgres)

    with pytest.raises(EarlierTable, match="results_schema"):
        database.run(create)


def test_a_failed_transaction_writes_nothing(tmp_path: Path) -> None:
    database = ConnectedDatabase(f"sqlite:///{tmp_path / 'results.sqlite3'}")
    database.run(lambda cursor: create_tables(cursor, is_postgres=False))

    def fail(cursor: Any) -> None:
        cursor.execute("INSERT INTO results_cluster (cluster, seq) VALUES ('c', 1)")
        raise ValueError

    with pytest.raises(ValueError):  # noqa: PT011 - the one above
        database.run(fail)
    count = database.run(
        lambda cursor: cursor.execute("SELECT count(*) FROM results_cluster").fetchone()
    )
    assert count == (0,)
    database.close()
