"""A query has a typed view with the values that its page has, on both databases."""

import json
import math
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest

from controlplane.access.roles import Actor
from controlplane.models import Cluster, Query
from controlplane.results.database import is_postgres, results_cursor
from controlplane.results.pages import keyed_windows
from controlplane.results.sql import schemas
from controlplane.results.sql.runs import run_statement
from controlplane.results.sql.schemas import role_of, update_views
from controlplane.results.sql.views import relation_of, schema_of
from controlplane.topology import queries
from tests.controlplane.results.sql.conftest import MINUTE, START, store, submitted

pytestmark = [
    pytest.mark.django_db(transaction=True, databases=["default", "results"]),
    pytest.mark.usefixtures("redis_url"),
]
VIEWS = (
    "SELECT relname FROM pg_class JOIN pg_namespace n ON n.oid = relnamespace WHERE nspname = %s"
)


def moment(ms: int) -> datetime:
    return datetime.fromtimestamp(ms / 1000, UTC)


def read(actor: Actor, cluster: Cluster, statement: str) -> list[dict[str, Any]]:
    result = run_statement(actor, cluster, statement)
    return [dict(zip(result.names, row, strict=True)) for row in result.rows]


@pytest.mark.both_databases
def test_every_key_and_aggregate_has_its_type(viewer: Actor, everything: Query) -> None:
    statement = 'SELECT * FROM "all-kinds" ORDER BY window_start'
    first, second = read(viewer, everything.cluster, statement)
    common = first.pop("common")
    assert (common if isinstance(common, list) else json.loads(common)) == [["kiosk", 2], ["b", 1]]
    exact = Decimal if is_postgres() else float
    assert first == {
        "window_start": moment(START), "window_end": moment(START + MINUTE), "final": True,
        "kept": 1.0, "changed_at": moment(START + 5),
        "stream": "r0", "station": "kiosk \u00e4 'x'", "open": True, "price": exact("12.5"),
        "built": date(2026, 1, 31) if is_postgres() else "2026-01-31", "grade": 7, "level": 0.1,
        "at": moment(START + 1500), "n": 3, "total": exact(10**20), "price_sum": exact("37.5"),
        "level_max": math.inf, "price_mean": exact("12.5"), "half": 0.5,
        "spread": pytest.approx(math.nan, nan_ok=True) if is_postgres() else None, "stations": 2,
        "first": moment(START + 1),
        "oldest": date(1999, 12, 31) if is_postgres() else "1999-12-31",
        "any_open": False, "last_station": "kiosk",
    }  # fmt: skip
    assert second.pop("stream") == "r1"
    assert not second.pop("final")
    assert [name for name, value in second.items() if value is not None] == [
        "window_start", "window_end", "kept", "changed_at"]  # fmt: skip


@pytest.mark.both_databases
def test_types_are_those_of_postgresql(viewer: Actor, everything: Query) -> None:
    result = run_statement(viewer, everything.cluster, 'SELECT * FROM "all-kinds" WHERE final')
    types = dict(zip(result.names, result.types, strict=True))
    assert types["window_start"] == types["at"] == types["first"] == "timestamptz"
    assert types["n"] == types["grade"] == "bigint"
    assert types["level"] == types["half"] == "double precision"
    if is_postgres():
        assert types["price"] == types["total"] == types["price_mean"] == "numeric"
        assert types["built"] == types["oldest"] == "date"
        assert types["open"] == types["final"] == "boolean"
        assert types["common"] == "jsonb"


@pytest.mark.both_databases
def test_a_view_has_the_values_of_the_page(
    operator: Actor, viewer: Actor, readings: Cluster
) -> None:
    query = submitted(operator, readings, "counts", n="count(*)", high="max(level)")
    rows = [(START + MINUTE * index, (f"s{index}",), (index, index / 3)) for index in range(20)]
    store(query, rows)
    store(query, [(START - MINUTE, ("sampled",), (3, 1.5))], sample="[1.0, 2.0]")
    update_views()
    shown = keyed_windows(readings, query, 100)
    statement = "SELECT * FROM counts ORDER BY window_start DESC"
    read_rows = read(viewer, readings, statement)
    assert [(w.start, w.key["station"], w.values["n"], w.values["high"], w.kept,
             str(w.state) == "final", w.changed_at) for w in shown] == [
        (row["window_start"], row["station"], row["n"], row["high"], row["kept"],
         bool(row["final"]), row["changed_at"]) for row in read_rows]  # fmt: skip
    assert shown[-1].kept == 0.75


@pytest.mark.both_databases
def test_starts_texts_and_names_beyond_the_usual(
    operator: Actor, viewer: Actor, readings: Cluster
) -> None:
    """Starts beyond the calendar, texts that PostgreSQL cannot have, names that are taken."""
    query = submitted(operator, readings, "results_window", final="count(*)", Kept="max(station)")
    far = 2**53
    store(query, [(-far, ("a",), (1, "x")), (far, ("nul \0 half \ud800",), (2, "y\0"))])
    update_views()
    low, high = read(viewer, readings, "SELECT * FROM results_window ORDER BY window_start")
    assert (low["window_start"].year, high["window_end"].year) == (1, 9999)
    assert (low["final_"], low["Kept_"], high["final_"]) == (1, "x", 2)
    assert high["station"].startswith("nul ")


@pytest.mark.both_databases
def test_the_newest_query_of_a_name_has_the_view(
    operator: Actor, viewer: Actor, readings: Cluster
) -> None:
    older = submitted(operator, readings, "counts")
    store(older, [(START, ("a",), (1,))])
    queries.end(operator, readings, ["counts"], "")
    Query.objects.filter(pk=older.pk).update(state=Query.State.ENDED)
    update_views()
    assert read(viewer, readings, "SELECT n FROM counts") == [{"n": 1}]
    newer = submitted(operator, readings, "counts", n="max(level)")
    store(newer, [(START, ("a",), (2.5,))])
    update_views()
    assert read(viewer, readings, "SELECT n FROM counts") == [{"n": 2.5}]
    Query.objects.filter(pk=newer.pk).delete()
    update_views()
    assert read(viewer, readings, "SELECT n FROM counts") == [{"n": 1}]


@pytest.mark.both_databases
def test_long_names_are_shortened(operator: Actor, viewer: Actor, readings: Cluster) -> None:
    names = [f"{'orders-' * 8}{index}" for index in range(2)]
    for index, name in enumerate(names):
        store(submitted(operator, readings, name), [(START, ("a",), (index,))])
    update_views()
    for index, name in enumerate(names):
        assert read(viewer, readings, f'SELECT n FROM "{name}"') == [{"n": index}]
        assert read(viewer, readings, f'SELECT n FROM "{relation_of(name)}"') == [{"n": index}]


postgres_only = pytest.mark.parametrize("database", ["postgresql"], indirect=True)


def view_names(cluster: Cluster) -> set[str]:
    with results_cursor() as cursor:
        cursor.execute(VIEWS, [schema_of(cluster)])
        return {name for (name,) in cursor.fetchall()}


@postgres_only
def test_schemas_follow_the_rows_of_clusters(
    operator: Actor, viewer: Actor, readings: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pass is continued by another, repeats nothing, and drops what is gone."""
    # The views of other tests.
    update_views()
    for index in range(5):
        submitted(operator, readings, f"q{index}")
    monkeypatch.setattr(schemas, "MOST_CHANGED", 2)
    assert [update_views() for _ in range(4)] == [2, 2, 1, 0]
    assert view_names(readings) == {f"q{index}" for index in range(5)}
    Query.objects.filter(name="q3").delete()
    schemas._seen.clear()
    assert (update_views(), update_views()) == (1, 0)
    with results_cursor() as cursor:
        cursor.execute(f'DROP VIEW "{schema_of(readings)}".q0')
    schemas._seen.clear()
    assert update_views() == 1
    assert view_names(readings) == {"q0", "q1", "q2", "q4"}
    role = role_of(readings.slug)
    with results_cursor() as cursor:
        # As after the database was restored under another name.
        cursor.execute(f'DROP OWNED BY "{role}"')
        cursor.execute(f'DROP ROLE "{role}"')
    schemas._seen.clear()
    assert update_views() == 0
    assert read(viewer, readings, "SELECT count(*) AS n FROM q1") == [{"n": 0}]
    Cluster.objects.filter(pk=readings.pk).update(slug="renamed")
    update_views()
    assert not view_names(readings)
    with results_cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_roles WHERE rolname = %s", [role])
        assert cursor.fetchone() == (0,)
