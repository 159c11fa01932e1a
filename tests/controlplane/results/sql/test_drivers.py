"""The login of a driver writes the results of its cluster, and nothing else of the database."""

import logging
from collections.abc import Iterator
from contextlib import closing
from typing import Any, Final

import psycopg
import pytest
from django.conf import settings
from django.db import connections
from django.utils import timezone

from controlplane.models import Cluster, Query
from controlplane.results.database import RESULTS, results_cursor
from controlplane.results.finality import update_finality
from controlplane.results.sql.drivers import driver_url
from controlplane.results.sql.logins import review_logins
from controlplane.results.sql.schemas import driver_of, update_views
from controlplane.wire.query_text import QueryText
from controlplane.wire.results.database import ConnectedDatabase
from controlplane.wire.results.finalized import ResultQuery
from controlplane.wire.results.tables import DAY_MS, TABLES, partitions
from controlplane.wire.results.writer import WindowWriter
from controlplane.wire.sources.files import FileSource
from tests.controlplane.results.sql.conftest import START
from tests.support.stored import changes, computed
from tests.support.whole_results import VARIABLE
from workers.pipeline.sources.files.index import FileIndex, IndexedFile

pytestmark = [
    pytest.mark.django_db(transaction=True, databases=["default", "results"]),
    pytest.mark.usefixtures("redis_url"),
]
postgres_only = pytest.mark.parametrize("database", ["postgresql"], indirect=True)
TEXT: Final = QueryText({"n": "count(*)"}, 60.0)
PASSWORD: Final = "of this test"
DAY: Final = START // DAY_MS
OTHERS: Final = "SELECT query_id FROM results_query WHERE cluster = 'other'"
ESCAPES: Final = (
    "SELECT * FROM controlplane_query", "SELECT * FROM auth_user", "SELECT * FROM pg_authid",
    f"SELECT * FROM results_window_day_{DAY}", "SELECT * FROM results_window_other",
    "CREATE TABLE public.x (a int)", "CREATE SCHEMA x", "CREATE ROLE x", "DROP TABLE results_file",
    f"DROP TABLE results_window_day_{DAY}", "TRUNCATE results_window",
    "ALTER TABLE results_window DISABLE ROW LEVEL SECURITY",
    "DROP POLICY drivers ON results_window", "SET ROLE weir", "SET SESSION AUTHORIZATION weir",
    "UPDATE results_query SET final_ms = 0", "DELETE FROM results_query",
    "DELETE FROM results_deleted", "DELETE FROM results_schema",
    "INSERT INTO results_deleted VALUES (1, 1)",
    "INSERT INTO results_query (query_id, cluster) VALUES (777777, 'other')",
    "INSERT INTO results_query (query_id, cluster, final_ms) VALUES (777777, 'sf', 1)",
    "INSERT INTO results_query (query_id, cluster, is_closed) VALUES (777777, 'sf', TRUE)",
    "INSERT INTO results_cluster VALUES ('third', 1)",
    "INSERT INTO results_schema VALUES ('other', 1, 'x')",
    "COPY results_window TO '/tmp/weir-escape'", "COPY (SELECT 1) TO PROGRAM 'id'",
    "INSERT INTO results_window SELECT 888888, 0, '', '[]', '[]', 1, NULL, NULL, NULL, 1, 1, 1",
)  # fmt: skip


@pytest.fixture
def own(operator: object, sf: Cluster) -> Iterator[int]:
    """The id of a query of `sf`; another one is of `other`. Roles are of the server."""
    Cluster.objects.create(slug="other", name="Other")
    yield made("sf")
    update_views()
    Cluster.objects.all().delete()
    update_views()


def made(cluster: str) -> int:
    row = Cluster.objects.get(slug=cluster)
    now = timezone.now()
    return Query.objects.create(
        cluster=row, name=cluster, text=TEXT.to_text(), window_s=60, submitted_at=now,
        state="running",
    ).pk  # fmt: skip


def write(url: str, cluster: str, query: int, batch: int = 1, day: int = 0, count: int = 1) -> None:
    """Write a window of two parts as a driver does."""
    database, computation = ConnectedDatabase(url), computed()
    writer = WindowWriter(database, cluster)
    row = {"pane": day * DAY_MS, "k0": "a", "s0": count, "s1": count, "s2": 10 * count}
    known = ResultQuery.of(computation, 2, 0)
    writer.take(batch, changes(computation, query, [row]), lambda ids: dict.fromkeys(ids, known))
    try:
        writer.flush()
    finally:
        database.close()


def windows(query: int) -> list[tuple[int, str]]:
    with results_cursor() as cursor:
        statement = "SELECT start_ms, value_json FROM results_window WHERE query_id = %s"
        cursor.execute(f"{statement} ORDER BY start_ms", [query])
        return [*cursor.fetchall()]


@postgres_only
def test_a_driver_writes_what_is_of_its_cluster_and_nothing_else(own: int) -> None:
    other = made("other")
    write(driver_url("other", PASSWORD), "other", other, day=DAY)
    url = driver_url("sf", PASSWORD)
    for batch, count in ((1, 1), (2, 5), (2, 5), (1, 1)):
        write(url, "sf", own, batch, DAY + 3, count)
    write(url, "sf", own, day=-2)
    assert windows(own) == [(-2 * DAY_MS, "[1,10]"), ((DAY + 3) * DAY_MS, "[5,50]")]
    with results_cursor() as cursor:
        assert {DAY, DAY + 3, -2} <= partitions(cursor).keys()
        before = [rows(cursor, table) for table in TABLES]
    with psycopg.connect(url, autocommit=True) as session:
        for statement in ESCAPES:
            with pytest.raises(psycopg.Error):
                session.execute(statement)
        for table in TABLES:
            found = session.execute(f"SELECT * FROM {table}").fetchall()
            assert not {row[0] for row in found} & {"other", other}, table
        for statement in (
            f"UPDATE results_window SET records = 9 WHERE query_id = {other}",
            f"DELETE FROM results_window WHERE query_id = {other}",
            f"DELETE FROM results_window WHERE query_id IN ({OTHERS})",
            "UPDATE results_cluster SET seq = 9 WHERE cluster = 'other'",
        ):
            assert session.execute(statement).rowcount == 0
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            session.execute(f"UPDATE results_window SET query_id = {other}")
    with results_cursor() as cursor:
        assert [rows(cursor, table) for table in TABLES] == before


def rows(cursor: object, table: str) -> list[str]:
    cursor.execute(f"SELECT * FROM {table}")  # type: ignore[attr-defined]
    return sorted(map(str, cursor.fetchall()))  # type: ignore[attr-defined]


@postgres_only
def test_a_driver_indexes_the_files_of_its_streams(
    own: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, driver_url("sf", PASSWORD))
    index = FileIndex(FileSource("file:///data"), "sf", 1)
    index.forget_others()
    index.append([IndexedFile(0, 0, 5, name, 10, 1, [0], ["n"]) for name in ("a", "b")])
    assert [file.name for file in index.files()] == ["a", "b"]
    index.forget(["a"], dict.fromkeys(range(64), 5))
    index.close()


@postgres_only
def test_a_claimed_query_is_returned_to_its_cluster(own: int) -> None:
    """A driver may name any query that has no results yet as one of its cluster."""
    other = made("other")
    write(driver_url("sf", PASSWORD), "sf", other, count=99)
    theirs = driver_url("other", PASSWORD)
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        write(theirs, "other", other)
    update_finality(timezone.now())
    write(theirs, "other", other)
    assert windows(other) == [(0, "[1,10]")]


@postgres_only
def test_another_driver_ends_the_sessions_of_the_one_before(own: int) -> None:
    with psycopg.connect(driver_url("sf", PASSWORD), autocommit=True) as session:
        assert review_logins() == 0
        driver_url("sf", "of the next one")
        with pytest.raises(psycopg.OperationalError):
            session.execute("SELECT 1")


@postgres_only
def test_the_login_ends_with_its_cluster(own: int) -> None:
    update_views()
    url = driver_url("sf", PASSWORD)
    with closing(psycopg.connect(url, autocommit=True)) as session:
        session.execute("CREATE TEMPORARY TABLE mine (a int)")
        Cluster.objects.all().delete()
        update_views()
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(url)


@postgres_only
def test_a_driver_starts_while_views_are_updated(own: int) -> None:
    with closing(connections[RESULTS].copy()) as other, other.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_lock(hashtext('weir_views'))")
        assert driver_url("sf", PASSWORD) != settings.RESULTS_URL


@postgres_only
def test_without_the_right_to_create_roles_drivers_run_as_the_site(
    own: int, caplog: pytest.LogCaptureFixture
) -> None:
    with results_cursor() as cursor:
        cursor.execute("SET ROLE pg_monitor")
        try:
            with caplog.at_level(logging.WARNING):
                assert driver_url("new", PASSWORD) == settings.RESULTS_URL
        finally:
            cursor.execute("RESET ROLE")
        assert [row.levelname for row in caplog.records] == ["WARNING"]
        cursor.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", [driver_of("new")])
        assert cursor.fetchone() is None


@postgres_only
@pytest.mark.parametrize("is_away", [True, False])
def test_a_server_that_is_away_is_no_reason_to_run_as_the_site(own: int, is_away: bool) -> None:
    connect, refused = psycopg.connect, list[str]()

    def refuse(url: str = "", **options: Any) -> Any:
        if "weir-driver" in url or (refused and is_away):
            refused.append(url)
            raise psycopg.OperationalError
        return connect(url, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(psycopg, "connect", refuse)
        if is_away:
            with pytest.raises(OSError, match="away"):
                driver_url("sf", PASSWORD)
        else:
            assert driver_url("sf", PASSWORD) == settings.RESULTS_URL


def test_sqlite_is_a_file_of_the_site(own: int) -> None:
    assert driver_url("sf", PASSWORD) == settings.RESULTS_URL
