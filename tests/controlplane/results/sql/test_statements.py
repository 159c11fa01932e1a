"""Statements read the views of their cluster and nothing else, within limits, on both databases."""

import threading
from typing import Any, Final

import pytest

from controlplane.access.roles import Actor
from controlplane.errors import Busy, Conflict, Forbidden, Invalid
from controlplane.models import Cluster, Query
from controlplane.results.database import is_postgres
from controlplane.results.sql import runs
from controlplane.results.sql.runs import run_statement
from controlplane.results.sql.schemas import update_views
from controlplane.wire.language.errors import place_of
from tests.controlplane.results.sql.conftest import MINUTE, START, store, submitted
from tests.support.cluster import actor

pytestmark = [
    pytest.mark.django_db(transaction=True, databases=["default", "results"]),
    pytest.mark.usefixtures("redis_url"),
]
# Statements that read or do something else, and what is said of each.
ESCAPES: Final = {
    "SELECT * FROM results_window": "no view results_window",
    "SELECT * FROM public.results_window": "no view results_window",
    "SELECT * FROM auth_user": "no view auth_user",
    "SELECT * FROM main.counts": "no view counts",
    "SELECT * FROM pg_stat_activity": "no view pg_stat_activity",
    "SELECT * FROM pg_catalog.pg_shadow": "no view pg_shadow",
    "SELECT * FROM information_schema.tables": "no view tables",
    "SELECT * FROM sqlite_master": "no view sqlite_master",
    "SELECT * FROM other.secret": "no view secret",
    "SELECT * FROM secret": "no view secret",
    "SELECT * FROM (WITH pg_roles AS (SELECT n FROM counts) SELECT n FROM pg_roles), pg_roles": "",
    "SELECT pg_read_file('/etc/passwd') FROM counts": "function pg_read_file",
    "SELECT * FROM pg_read_file('/etc/passwd')": "only views",
    "SELECT * FROM pg_ls_dir('/')": "only views",
    "SELECT * FROM dblink('host=x', 'SELECT 1') AS t(a int)": "only views",
    "SELECT pg_sleep(60)": "function pg_sleep",
    "SELECT set_config('role', 'postgres', false)": "function set_config",
    "SELECT current_setting('data_directory')": "function current_setting",
    "SELECT lo_import('/etc/passwd')": "function lo_import",
    "SELECT query_to_xml('SELECT 1', true, true, '')": "function query_to_xml",
    "SELECT load_extension('x')": "function load_extension",
    "SELECT readfile('/etc/passwd')": "function readfile",
    "SELECT 'pg_authid'::regclass": "ObjectIdentifier",
    "SELECT repeat('a', 1000000000)": "function repeat",
    "SELECT * FROM generate_series(1, 1000000000)": "only views",
    "SELECT string_agg(station, '') FROM counts": "function",
    "SELECT current_user": "function current_user",
    "COPY counts TO '/tmp/x'": "only SELECT",
    "COPY (SELECT 1) TO PROGRAM 'id'": "",
    "SET ROLE postgres": "only SELECT",
    "RESET ROLE": "",
    "ATTACH DATABASE '/tmp/x' AS x": "only SELECT",
    "PRAGMA writable_schema = 1": "only SELECT",
    "VACUUM INTO '/tmp/x'": "",
    "DO $$ BEGIN END $$": "",
    "EXPLAIN ANALYZE SELECT 1": "only SELECT",
    "INSERT INTO counts VALUES (1)": "only SELECT",
    "DELETE FROM counts": "only SELECT",
    "CREATE TABLE x AS SELECT * FROM counts": "only SELECT",
    "SELECT * INTO x FROM counts": "Into",
    "SELECT * FROM counts FOR UPDATE": "Lock",
    "WITH d AS (DELETE FROM counts RETURNING *) SELECT * FROM d": "Delete",
    "WITH RECURSIVE t AS (SELECT 'x' s UNION ALL SELECT s || s FROM t) SELECT * FROM t": "RECURS",
    "SELECT 1; DROP TABLE results_window": "one statement",
    "SELECT E'\\'; DROP TABLE results_window; --'": "",
    'SELECT extract("epoch from now()); DROP TABLE x; --" FROM window_start) FROM counts': "",
    "SELECT n FROM counts LATERAL JOIN counts": "",
    "SELECT xmin FROM counts": "no column xmin",
    "SELECT missing FROM counts": "no column missing",
    "": "enter a SELECT",
    f"SELECT {'(' * 3000}1{')' * 3000}": "",
    f"SELECT {'1 + ' * 2500}1": "",
}  # fmt: skip


@pytest.fixture
def counts(operator: Actor, readings: Cluster) -> Query:
    """A query with 300 windows, and another cluster with a query named secret."""
    query = submitted(operator, readings, "counts", n="count(*)", high="max(level)")
    store(query, [(START + MINUTE * i, (f"s{i % 3}",), (i, i / 2)) for i in range(300)])
    other = Cluster.objects.create(slug="other", name="Other")
    hidden = Query.objects.get(pk=submitted(operator, readings, "secret").pk)
    Query.objects.filter(pk=hidden.pk).update(cluster=other)
    update_views()
    return query


def rows(by: Actor, query: Query, statement: str) -> list[list[Any]]:
    return [list(row) for row in run_statement(by, query.cluster, statement).rows]


def refusal(by: Actor, query: Query, statement: str) -> str:
    with pytest.raises(Invalid) as refused:
        run_statement(by, query.cluster, statement)
    return str(refused.value.fields["statement"][0])


@pytest.mark.both_databases
def test_a_statement_reads_nothing_else(viewer: Actor, counts: Query) -> None:
    for statement, why in ESCAPES.items():
        try:
            message = refusal(viewer, counts, statement)
        except Conflict as missing:
            message = str(missing.code)
        assert why.lower() in message.lower(), statement


@pytest.mark.both_databases
def test_the_authorizer_and_the_role_refuse_what_a_check_would_miss(
    viewer: Actor, counts: Query, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second line of defence: the database refuses unchecked trees, too."""
    from controlplane.results.sql import statements, views  # noqa: PLC0415

    def unchecked(cluster: Cluster, text: str) -> statements.Statement:
        known = views.views_of(cluster, ["counts"])
        return statements.Statement(text, statements._parsed(text), (known["counts"],))

    monkeypatch.setattr(runs, "checked", unchecked)
    other = (
        ["SELECT * FROM public.results_window", "SELECT * FROM public.auth_user",
         "SELECT * FROM other.secret", "SELECT pg_read_file('/etc/passwd')",
         "SELECT * INTO TEMP x FROM sf.counts",
         "SELECT * FROM pg_catalog.pg_authid"]
        if is_postgres()
        else ["SELECT * FROM results_window", "SELECT * FROM sqlite_master",
              "SELECT load_extension('x')", "SELECT zeroblob(9)", "SELECT * FROM results_query",
              "WITH RECURSIVE t(a) AS (SELECT 1 UNION ALL SELECT a + 1 FROM t) SELECT a FROM t"]
    )  # fmt: skip
    for statement in other:
        with pytest.raises((Invalid, Conflict)):
            run_statement(viewer, counts.cluster, statement)
    monkeypatch.undo()
    assert rows(viewer, counts, "SELECT count(*) FROM counts") == [[300]]


@pytest.mark.both_databases
def test_statements_are_the_same_on_both_databases(viewer: Actor, counts: Query) -> None:
    def value(statement: str) -> list[Any]:
        return rows(viewer, counts, statement)

    assert value('SELECT sum(n) FROM sf."counts" c WHERE c.high >= 149') == [[298 + 299]]
    assert value("SELECT sf.counts.n FROM sf.counts ORDER BY 1 LIMIT 2") == [[0], [1]]
    assert value("SELECT station, count(*) FROM counts GROUP BY station ORDER BY 1 DESC") == [
        ["s2", 100], ["s1", 100], ["s0", 100]]  # fmt: skip
    hours = value(
        "SELECT date_trunc('hour', window_start) AS h, max(n) FROM counts"
        " WHERE window_start >= '2026-11-30 01:00' AND window_start < '2026-11-30T03:00Z'"
        " GROUP BY 1 ORDER BY 1"
    )
    assert [(hour.hour, n) for hour, n in hours] == [(1, 119), (2, 179)]
    assert value("SELECT count(*) FROM counts WHERE window_start > now() - interval '10 years'"
                 " AND window_end < now() + interval '10 years'") == [[300]]  # fmt: skip
    assert value("SELECT n FROM counts WHERE window_start = '2026-11-30 00:07'") == [[7]]
    assert value("SELECT n FROM counts WHERE window_start BETWEEN '2026-11-30 00:07' AND"
                 " timestamptz '2026-11-30 00:08' ORDER BY n") == [[7], [8]]  # fmt: skip
    assert value("SELECT extract(epoch FROM window_start) / 60 - 0 FROM counts WHERE n = 2") == [
        [START / MINUTE + 2]]  # fmt: skip
    assert value("WITH counts AS (SELECT n * 2 AS m FROM counts WHERE final OR n < 2)"
                 " SELECT max(m) FROM counts") == [[2]]  # fmt: skip
    assert value("SELECT a.n, b.n FROM counts a JOIN counts b ON a.n = b.n + 1"
                 " WHERE a.n = 5 UNION ALL SELECT 0, 0 ORDER BY 1") == [[0, 0], [5, 4]]  # fmt: skip
    assert value("SELECT round(stddev(high)::numeric, 3), lower(upper('a')) || 'b' FROM counts"
                 " WHERE n < 3") in ([[0.5, "ab"]], [[pytest.approx(0.5), "ab"]])  # fmt: skip
    assert value("SELECT n, lag(n) OVER (ORDER BY n) AS before FROM counts ORDER BY n LIMIT 2") == [
        [0, None], [1, 0]]  # fmt: skip
    assert value("SELECT CASE WHEN n > 1 THEN 'x' END, coalesce(NULL, n), n IN (1, 2)"
                 " FROM counts WHERE n = 2") == [["x", 2, True]]  # fmt: skip


@pytest.mark.both_databases
def test_an_error_has_its_place_and_advice(viewer: Actor, counts: Query) -> None:
    with pytest.raises(Invalid) as refused:
        run_statement(viewer, counts.cluster, "SELECT n,\n  hihg FROM counts")
    (message,) = refused.value.fields["statement"]
    assert message == 'Line 2, column 3: there is no column hihg; write "high"'
    place = place_of(message)
    assert place is not None
    assert (place.line, place.marks) == ("  hihg FROM counts", "  ^^^^")
    assert '"counts"' in refusal(viewer, counts, "SELECT n FROM count")
    assert "double quotes" in refusal(viewer, counts, "SELECT n FROM my-counts x")
    assert refusal(viewer, counts, "SELECT n / 0 FROM counts WHERE station + 1 > 'x' + n") \
        if is_postgres() else True  # fmt: skip


@pytest.mark.both_databases
def test_statements_have_limits(
    viewer: Actor, counts: Query, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs, "MAX_ROWS", 1000)
    result = run_statement(viewer, counts.cluster, "SELECT a.n FROM counts a, counts b")
    assert (len(result.rows), result.is_cut) == (1000, True)
    monkeypatch.setattr(runs, "MAX_BYTES", 10_000)
    with pytest.raises(Conflict, match="MiB") as large:
        run_statement(viewer, counts.cluster, "SELECT a.* FROM counts a, counts b")
    assert large.value.code == "too_large"
    bomb = "SELECT count(*) FROM counts a, counts b, counts c, counts d, counts e"
    with pytest.raises(Conflict) as late:
        run_statement(viewer, counts.cluster, bomb, 0.5)
    assert late.value.code == "too_long"
    doubled = "WITH a AS (SELECT station || station || station || station AS s FROM counts)"
    for name, other in zip("bcdefgh", "abcdefg", strict=True):
        parts = " || ".join(["s"] * 9)
        doubled += f", {name} AS (SELECT {parts} AS s FROM {other})"
    monkeypatch.setattr(runs, "MAX_S", 60.0)
    ((longest,),) = rows(viewer, counts, f"{doubled} SELECT max(length(s)) FROM h")
    assert longest == 10_000
    # Merged into one query, these are 9 ** 8 columns.
    nested = "SELECT station AS s FROM counts WHERE n = 1"
    for _ in range(8):
        nested = f"SELECT {' || '.join(['s'] * 9)} AS s FROM ({nested}) q"
    assert rows(viewer, counts, f"SELECT length(s) FROM ({nested}) q") == [[10_000]]


@pytest.mark.both_databases
def test_a_statement_leaves_nothing_behind(viewer: Actor, counts: Query) -> None:
    """Neither the role nor the limits stay on the connection."""
    refusal(viewer, counts, "SELECT n / (n - n) FROM counts") if is_postgres() else None
    store(counts, [(START - MINUTE, ("after",), (1, 1.0))])
    assert rows(viewer, counts, "SELECT n FROM counts WHERE station = 'after'") == [[1]]


def test_who_may_not_see_the_cluster_reads_nothing(counts: Query) -> None:
    with pytest.raises(Forbidden):
        run_statement(actor("", "stranger"), counts.cluster, "SELECT n FROM counts")


def test_few_statements_run_at_once(
    viewer: Actor, counts: Query, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs, "_FREE", threading.BoundedSemaphore(1))
    monkeypatch.setattr(runs, "_WAIT_S", 0.0)
    with runs._slot(0.0), pytest.raises(Busy):
        run_statement(viewer, counts.cluster, "SELECT n FROM counts")
    assert rows(viewer, counts, "SELECT count(*) FROM counts") == [[300]]
