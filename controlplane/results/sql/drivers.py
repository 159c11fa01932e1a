"""Logins of PostgreSQL with which drivers write the results of their cluster, and nothing else.

Row security and the privileges of one group are declared with the tables (`DRIVER_PRIVILEGES`); a
driver has a login in this group, by whose name a policy finds its cluster. Nothing of it is stored:
the agent derives the password and sets it when it starts a driver, which ends the sessions of the
driver before.
"""

import logging
from contextlib import closing
from typing import Any, Final

import psycopg
from django.conf import settings
from django.db import Error, InterfaceError, OperationalError, connections, transaction
from psycopg.conninfo import make_conninfo

from controlplane.results.database import RESULTS, is_postgres, results_cursor
from controlplane.results.sql.columns import identifier, quoted
from controlplane.results.sql.logins import login_url, scram_verifier
from controlplane.results.sql.schemas import END_SESSIONS, driver_of
from controlplane.wire.results.tables import DRIVER_PRIVILEGES

logger = logging.getLogger(__name__)

_CONNECT_S: Final = 10
# Two agents may start drivers at once; not that of views, whose updates may take long.
_LOCK: Final = "SELECT pg_advisory_xact_lock(hashtext('weir_drivers'))"


def driver_url(slug: str, password: str) -> str:
    """Return the URL with which the driver of a cluster writes its results.

    That of Weir's user with SQLite, or if PostgreSQL makes or accepts no such login: the log has
    the reason. Raises `OSError` if the database is away.
    """
    if not is_postgres():
        return settings.RESULTS_URL
    try:
        login = driver_of(slug)
        _create(login, password)
        url = login_url(login, password, with_options=True)
        _check_login(url)
    except (OperationalError, InterfaceError) as error:
        raise OSError(f"the database of results is away: {error}") from error
    except (Error, psycopg.Error) as error:
        logger.warning(
            "The driver of %s has the URL of Weir's user of PostgreSQL, who reaches all results, as"
            " it has no login of its own (docs/operations/protect.md, Database of results): %s",
            slug, error,
        )  # fmt: skip
        return settings.RESULTS_URL
    return url


def _check_login(url: str) -> None:
    """Log in and look at what a driver needs; once more if it failed while Weir's user can log in.

    Raises `psycopg.Error` if it lacks something, Django's if Weir's user cannot log in either.
    """
    try:
        _use_login(url)
    except psycopg.OperationalError:
        with closing(connections[RESULTS].copy()) as own:
            own.ensure_connection()
        _use_login(url)


def _use_login(url: str) -> None:
    with psycopg.connect(make_conninfo(url, connect_timeout=_CONNECT_S)) as session:
        session.execute("SELECT FROM results_window, results_cluster LIMIT 0")
        session.execute("CREATE TEMPORARY TABLE staged (tried int) ON COMMIT DROP")


def _create(login: str, password: str) -> None:
    """Create the group and the login, or change its password; end its sessions of before."""
    group = f"weir-drivers.{login.split('.')[1]}"
    with transaction.atomic(RESULTS), results_cursor() as cursor:
        # Its holder may have lost its machine.
        cursor.execute(f"SET LOCAL lock_timeout = '{_CONNECT_S}s'")
        cursor.execute(_LOCK)
        cursor.execute("SELECT rolname FROM pg_roles WHERE rolname IN (%s, %s)", [group, login])
        known = {name for (name,) in cursor.fetchall()}
        if group not in known:
            cursor.execute(f"CREATE ROLE {identifier(group)} NOLOGIN")
        schema = _grant(cursor, identifier(group))
        if login not in known:
            cursor.execute(f"CREATE ROLE {identifier(login)} IN ROLE {identifier(group)}")
            cursor.execute(f"GRANT {identifier(login)} TO CURRENT_USER")
        cursor.execute(f"ALTER ROLE {identifier(login)} SET search_path = {schema}")
        verifier = scram_verifier(login, password)
        cursor.execute(f"ALTER ROLE {identifier(login)} LOGIN PASSWORD {quoted(verifier)}")
    with results_cursor() as cursor:
        # With the former password none can follow.
        cursor.execute(END_SESSIONS, [login])


def _grant(cursor: Any, group: str) -> str:
    """Grant the group the privileges of drivers; return the schema of the tables, quoted."""
    for table, (_, privileges) in DRIVER_PRIVILEGES.items():
        cursor.execute(f"GRANT {privileges} ON {table} TO {group}")
    cursor.execute(f"GRANT EXECUTE ON FUNCTION results_partitions TO {group}")
    cursor.execute("SELECT quote_ident(current_schema())")
    schema = str(cursor.fetchone()[0])
    cursor.execute(f"GRANT USAGE ON SCHEMA {schema} TO {group}")
    name = identifier(str(connections[RESULTS].settings_dict["NAME"]))
    cursor.execute(f"GRANT TEMPORARY ON DATABASE {name} TO {group}")
    return schema
