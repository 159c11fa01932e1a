"""Logins of PostgreSQL with which drivers write the results of their cluster, and nothing else.

Row security and the rights of one group are declared with the tables (`DRIVER_RIGHTS`); a driver
has a login in this group, by whose name a policy finds its cluster. Nothing of it is stored: the
agent derives the password and sets it when it starts a driver, which ends the sessions of the
driver before.
"""

import logging
from typing import Any, Final

import psycopg
from django.conf import settings
from django.db import Error, OperationalError, connections, transaction
from psycopg.conninfo import make_conninfo

from controlplane.results.database import RESULTS, is_postgres, results_cursor
from controlplane.results.sql.columns import identifier, quoted
from controlplane.results.sql.logins import login_url, scram_verifier
from controlplane.results.sql.schemas import CATALOG_LOCK, database_number, driver_of
from controlplane.wire.results.tables import DRIVER_RIGHTS

logger = logging.getLogger(__name__)

_CONNECT_S: Final = 10
_END: Final = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = %s"


def driver_url(slug: str, password: str) -> str:
    """Return the URL with which the driver of a cluster writes its results.

    That of Weir's user with SQLite, or if PostgreSQL makes or accepts no such login: the log has
    the reason. Raises `OSError` if the database is away.
    """
    if not is_postgres():
        return settings.RESULTS_URL
    login = driver_of(slug)
    try:
        _create(login, password)
        url = login_url(login, password, with_options=True)
        psycopg.connect(make_conninfo(url, connect_timeout=_CONNECT_S)).close()
    except OperationalError as error:
        raise OSError(f"the database of results is away: {error}") from error
    except (Error, psycopg.Error) as error:
        logger.warning(
            "The driver of %s has the URL of Weir's user of PostgreSQL, who reaches all results, as"
            " it has no login of its own (docs/operations/protect.md, Database of results): %s",
            slug, error,
        )  # fmt: skip
        return settings.RESULTS_URL
    return url


def _create(login: str, password: str) -> None:
    """Create the group and the login, or change its password; end sessions of the login."""
    group = f"weir-drivers.{database_number()}"
    with transaction.atomic(RESULTS), results_cursor() as cursor:
        cursor.execute(CATALOG_LOCK)
        cursor.execute("SELECT rolname FROM pg_roles WHERE rolname IN (%s, %s)", [group, login])
        known = {name for (name,) in cursor.fetchall()}
        if group not in known:
            cursor.execute(f"CREATE ROLE {identifier(group)} NOLOGIN")
        _grant(cursor, identifier(group))
        if login not in known:
            cursor.execute(f"CREATE ROLE {identifier(login)} IN ROLE {identifier(group)}")
            cursor.execute(f"GRANT {identifier(login)} TO CURRENT_USER")
        verifier = scram_verifier(login, password)
        cursor.execute(f"ALTER ROLE {identifier(login)} LOGIN PASSWORD {quoted(verifier)}")
        cursor.execute(_END, [login])


def _grant(cursor: Any, group: str) -> None:
    for table, (_, rights) in DRIVER_RIGHTS.items():
        cursor.execute(f"GRANT {rights} ON {table} TO {group}")
    cursor.execute(f"GRANT EXECUTE ON FUNCTION results_partitions TO {group}")
    name = identifier(str(connections[RESULTS].settings_dict["NAME"]))
    cursor.execute(f"GRANT TEMPORARY ON DATABASE {name} TO {group}")
