"""A login of PostgreSQL reads the views of its cluster, and nothing else of the database."""

import hmac
import warnings
from base64 import b64decode
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from hashlib import pbkdf2_hmac, sha256
from typing import Any, Final

import pandas as pd
import psycopg
import pytest
from django.contrib.auth.models import User
from django.test import Client

from controlplane.access import grants, idempotency
from controlplane.access.roles import VIEWER, Actor
from controlplane.errors import ConfirmationNeeded, Conflict, Forbidden
from controlplane.models import AuditEntry, Cluster, KeptAnswer, Query
from controlplane.results.database import results_cursor
from controlplane.results.sql import logins
from controlplane.results.sql.logins import make_login, review_logins
from controlplane.results.sql.schemas import update_views
from tests.controlplane.results.sql.conftest import MINUTE, START, store, submitted
from tests.support.cluster import actor, confirmed

pytestmark = [
    pytest.mark.django_db(transaction=True, databases=["default", "results"]),
    pytest.mark.usefixtures("redis_url"),
]
postgres_only = pytest.mark.parametrize("database", ["postgresql"], indirect=True)
# What a session of a login may not do, and may not after it has lifted its own limits either.
ESCAPES: Final = (
    "SELECT * FROM public.results_window", "SELECT * FROM public.results_query",
    "SELECT * FROM public.auth_user", "SELECT * FROM public.controlplane_apitoken",
    'SELECT * FROM other."secret"', "SELECT * FROM pg_authid", "SELECT * FROM pg_shadow",
    "SELECT pg_read_file('/etc/passwd')", "SELECT pg_ls_dir('/')",
    "SELECT lo_import('/etc/passwd')",
    "COPY sf.counts TO '/tmp/weir-escape'", "COPY (SELECT 1) TO PROGRAM 'id'",
    "CREATE EXTENSION dblink", "CREATE TABLE sf.x (a int)", "CREATE TABLE public.x (a int)",
    "CREATE SCHEMA x", "CREATE ROLE x", "DROP VIEW sf.counts", "ALTER ROLE CURRENT_USER CREATEDB",
    "INSERT INTO sf.counts (n) VALUES (1)", "UPDATE sf.counts SET n = 1", "DELETE FROM sf.counts",
    "SET ROLE weir", "SET SESSION AUTHORIZATION weir", "SET session_replication_role = replica",
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'weir'",
    "WITH d AS (DELETE FROM sf.counts RETURNING *) SELECT * FROM d",
    "LOAD 'auto_explain'", "CREATE FUNCTION sf.f() RETURNS int LANGUAGE sql AS 'SELECT 1'",
    "TRUNCATE public.results_window", "LOCK TABLE public.results_window",
)  # fmt: skip


@pytest.fixture
def viewer(transactional_db: None, redis_url: str) -> Actor:
    """A person who may look, and has confirmed to be present."""
    return actor("viewer")


@pytest.fixture
def counts(operator: Actor, readings: Cluster) -> Query:
    """A query with 100 windows, and a query of another cluster."""
    query = submitted(operator, readings, "counts", n="count(*)", high="max(level)")
    store(query, [(START + MINUTE * i, (f"s{i % 3}",), (i, i / 2)) for i in range(100)])
    other = Cluster.objects.create(slug="other", name="Other")
    secret = submitted(operator, readings, "secret")
    store(secret, [(START, ("hidden",), (1,))])
    Query.objects.filter(pk=secret.pk).update(cluster=other)
    update_views()
    return query


@pytest.fixture
def no_logins(transactional_db: None) -> Iterator[None]:
    """Drop the logins afterwards: roles are of the server."""
    yield
    User.objects.update(is_active=False)
    review_logins()


def opened(url: str) -> Any:
    return closing(psycopg.connect(url, autocommit=True))


@postgres_only
def test_a_login_reads_the_views_of_its_cluster_alone(
    viewer: Actor, counts: Query, no_logins: None
) -> None:
    with opened(make_login(viewer, counts.cluster)) as session:
        assert session.execute("SELECT count(*), max(n) FROM counts").fetchone() == (100, 99)
        for lifted in (False, True):
            for statement in ESCAPES:
                if lifted:
                    session.execute("SET default_transaction_read_only = off")
                    session.execute("SET statement_timeout = 0")
                with pytest.raises(psycopg.Error):
                    session.execute(statement)
        visible = session.execute(
            "SELECT table_schema, table_name FROM information_schema.tables"
            " WHERE table_schema NOT IN ('pg_catalog', 'information_schema')"
        ).fetchall()
        assert visible == [("sf", "counts")]
        assert session.execute("SELECT count(*) FROM counts").fetchone() == (100,)


@postgres_only
def test_no_function_of_a_session_gets_rows_of_others(
    viewer: Actor, counts: Query, no_logins: None
) -> None:
    """A function that is cheap is not called before the barrier has chosen the rows."""
    with opened(make_login(viewer, counts.cluster)) as session:
        notices: list[str] = []
        session.add_notice_handler(lambda notice: notices.append(notice.message_primary))
        session.execute("SET default_transaction_read_only = off")
        session.execute(
            "CREATE FUNCTION pg_temp.leak(text) RETURNS bool LANGUAGE plpgsql COST 0.0001 AS"
            " $$ BEGIN RAISE NOTICE '%', $1; RETURN true; END $$"
        )
        session.execute("SELECT count(*) FROM counts WHERE pg_temp.leak(station)")
        assert set(notices) == {"s0", "s1", "s2"}


@postgres_only
def test_pandas_reads_by_the_connection_string(
    viewer: Actor, counts: Query, no_logins: None
) -> None:
    statement = "SELECT window_start, station, n, high, final FROM counts ORDER BY window_start"
    with opened(make_login(viewer, counts.cluster)) as session, warnings.catch_warnings():
        # pandas names SQLAlchemy as what it is tested with.
        warnings.simplefilter("ignore", UserWarning)
        frame = pd.read_sql(statement, session, parse_dates=["window_start"])
    assert [str(kind) for kind in frame.dtypes] == [
        "datetime64[ns, UTC]", "object", "int64", "float64", "bool"]  # fmt: skip
    assert frame["n"].tolist() == list(range(100))
    assert frame["final"].tolist() == [True] + [False] * 99
    assert frame["window_start"].iloc[1] == pd.Timestamp(START + MINUTE, unit="ms", tz="UTC")


@postgres_only
def test_the_statements_of_grafanas_data_source(
    viewer: Actor, counts: Query, no_logins: None
) -> None:
    """What its macros expand to: $__timeFilter, $__timeGroupAlias, $__timeFrom, $__unixEpoch…"""
    between = "window_start BETWEEN '2026-11-30T00:10:00Z' AND '2026-11-30T00:19:59.999Z'"
    group = "floor(extract(epoch from window_start)/300)*300"
    with opened(make_login(viewer, counts.cluster)) as session:
        series = session.execute(
            f'SELECT {group} AS "time", station AS metric, avg(n) AS value'
            f" FROM counts WHERE {between} GROUP BY 1, 2 ORDER BY 1, 2"
        ).fetchall()
        assert len(series) == 6
        assert {float(row[0]) for row in series} == {START / 1000 + 600, START / 1000 + 900}
        plain = session.execute(
            f'SELECT window_start AS "time", n FROM sf.counts WHERE {between} ORDER BY 1'
        ).fetchall()
        assert [n for _, n in plain] == list(range(10, 20))
        epochs = session.execute(
            "SELECT count(*) FROM counts WHERE extract(epoch from window_start) >= %s AND"
            " window_start >= '2026-11-30T00:10:00Z'" % (START // 1000)
        ).fetchone()
        assert epochs == (90,)
        # What it asks for at the start: version, search path, tables and columns of the editor.
        assert session.execute("SELECT current_setting('server_version_num')::int/100").fetchone()
        tables = session.execute(
            "SELECT quote_ident(table_name) FROM information_schema.tables WHERE quote_ident("
            "table_schema) IN (SELECT CASE WHEN trim(s[i]) = '\"$user\"' THEN user ELSE trim(s[i])"
            " END FROM generate_series(array_lower(string_to_array(current_setting('search_path'),"
            "','),1), array_upper(string_to_array(current_setting('search_path'),','),1)) as i,"
            " string_to_array(current_setting('search_path'),',') s) ORDER BY 1"
        ).fetchall()
        assert tables == [("counts",)]
        columns = session.execute(
            "SELECT column_name, data_type FROM information_schema.columns"
            " WHERE table_name = 'counts'"
        ).fetchall()
        assert ("n", "bigint") in columns
        assert ("window_start", "timestamp with time zone") in columns


@postgres_only
def test_a_login_has_limits_and_one_password(
    viewer: Actor, counts: Query, no_logins: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    former = make_login(viewer, counts.cluster)
    url = make_login(viewer, counts.cluster)
    with results_cursor() as cursor:
        cursor.execute("SELECT rolconnlimit, rolvaliduntil > now() + interval '80 days',"
                       " rolsuper, rolcreatedb, rolcreaterole, rolbypassrls FROM pg_roles"
                       " WHERE rolname LIKE 'weir.%%' AND rolcanlogin")  # fmt: skip
        assert cursor.fetchone() == (logins.MAX_CONNECTIONS, True, False, False, False, False)
        cursor.execute("SELECT rolname, rolpassword FROM pg_authid WHERE rolcanlogin"
                       " AND rolname LIKE 'weir.%%'")  # fmt: skip
        ((_, stored),) = cursor.fetchall()
        assert stored.startswith("SCRAM-SHA-256$")
    assert url != former
    password = url.split(":")[2].split("@")[0]
    assert len(password) >= 32
    # The server of the tests trusts everybody: this is what others compare.
    rounds, salt, keys = stored.removeprefix("SCRAM-SHA-256$").replace("$", ":").split(":", 2)
    salted = pbkdf2_hmac("sha256", password.encode(), b64decode(salt), int(rounds))
    client_key = hmac.digest(salted, b"Client Key", "sha256")
    assert b64decode(keys.split(":")[0]) == sha256(client_key).digest()
    assert password not in str(list(AuditEntry.objects.values()))
    with opened(url) as session:
        shown = session.execute("SHOW statement_timeout").fetchone()
        assert shown == (f"{logins.STATEMENT_S}s",)
        session.execute("SET default_transaction_read_only = off")
        session.execute("SELECT pg_advisory_lock(1)")
        review_logins()
        with pytest.raises(psycopg.OperationalError):
            session.execute("SELECT 1")
    monkeypatch.setattr(logins, "MAX_TRANSACTION_S", 0)
    with opened(url) as session:
        session.execute("BEGIN")
        session.execute("SELECT count(*) FROM counts")
        review_logins()
        with pytest.raises(psycopg.OperationalError):
            session.execute("SELECT 1")


@postgres_only
def test_a_login_ends_with_the_access_of_its_user(
    operator: Actor, counts: Query, no_logins: None
) -> None:
    admin, guest = actor("admin", "chief"), actor("", "guest")
    grants.grant(admin, "guest", VIEWER, counts.cluster)
    guest = Actor(guest.user, is_confirmed=True)
    url = make_login(guest, counts.cluster)
    assert review_logins() == 0
    with opened(url) as session:
        grants.revoke(admin, "guest", counts.cluster)
        assert review_logins() == 1
        with pytest.raises(psycopg.OperationalError):
            session.execute("SELECT 1")
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(url)


@postgres_only
def test_who_gets_a_login(viewer: Actor, counts: Query, no_logins: None) -> None:
    with pytest.raises(Forbidden):
        make_login(actor("", "nobody-here"), counts.cluster)
    with pytest.raises(ConfirmationNeeded):
        make_login(Actor(viewer.user), counts.cluster)
    assert make_login(viewer, counts.cluster)
    entry = AuditEntry.objects.order_by("-pk").first()
    assert entry is not None
    assert (entry.action, entry.cluster_id) == ("results.login", counts.cluster.pk)


@postgres_only
def test_a_repeated_request_does_not_store_the_password(
    viewer: Actor, counts: Query, no_logins: None
) -> None:
    client = Client()
    client.force_login(viewer.user)  # type: ignore[arg-type]
    confirmed(client)
    path, key = "/api/v1/clusters/sf/sql/login", {"Idempotency-Key": "3f1c"}
    first, second = (client.post(path, headers=key) for _ in range(2))
    assert (first.status_code, second.status_code) == (201, 409)
    assert second.json()["code"] == "secret_not_repeated"
    with opened(first.json()["secret"]) as session:
        assert session.execute("SELECT count(*) FROM counts").fetchone() == (100,)
    password = first.json()["secret"].split(":")[2].split("@")[0]
    answers = [idempotency.body_of(answer) for answer in KeptAnswer.objects.all()]
    assert answers
    assert not any(password.encode() in answer for answer in answers)


def test_sqlite_has_no_logins(viewer: Actor, readings: Cluster) -> None:
    with pytest.raises(Conflict) as refused:
        make_login(viewer, readings)
    assert refused.value.code == "no_logins"
    assert (review_logins(), update_views()) == (0, 0)
    assert timedelta(days=1) < logins.VALID_FOR
