"""Logins of PostgreSQL with which users read the views of a cluster from their own tools.

Each is a role of one user and cluster. Its password is made on request and shown once: the database
gets a SCRAM verifier. A pass of the beat drops the logins of users who may no longer see the
cluster, and ends sessions that hold locks for too long, as a client can lift its own limits.
"""

import secrets
from datetime import datetime, timedelta
from typing import Any, Final
from urllib.parse import quote, urlencode

from django.contrib.auth.models import User
from django.db import connections, transaction
from django.utils import timezone

from controlplane.access import audit
from controlplane.access.roles import VIEWER, Actor, require_confirmed, require_viewer
from controlplane.access.second_factor_rule import require_factor
from controlplane.errors import Conflict
from controlplane.models import Cluster
from controlplane.results.database import RESULTS, is_postgres, results_cursor
from controlplane.results.sql.columns import identifier, quoted
from controlplane.results.sql.schemas import drop_login, role_of
from controlplane.results.sql.views import schema_of

# As tokens.
VALID_FOR: Final = timedelta(days=90)
MAX_CONNECTIONS: Final = 3
STATEMENT_S: Final = 30
# Of a session: how old its transaction may be (s). The sink waits for locks of a minute.
MAX_TRANSACTION_S: Final = 45
_SETTINGS: Final = {
    "default_transaction_read_only": "on",
    "statement_timeout": f"{STATEMENT_S}s",
    "idle_in_transaction_session_timeout": f"{STATEMENT_S}s",
    "lock_timeout": "5s",
    "timezone": "UTC",
}
_LOGINS: Final = "SELECT rolname FROM pg_roles WHERE rolname LIKE %s AND rolcanlogin"
_END: Final = (
    "SELECT pg_terminate_backend(a.pid) FROM pg_stat_activity a WHERE a.usename LIKE %s"
    " AND (a.xact_start < now() - %s * interval '1 second' OR EXISTS"
    " (SELECT 1 FROM pg_locks l WHERE l.pid = a.pid AND l.locktype = 'advisory'))"
)


def require_postgres() -> None:
    """Raise `Conflict` (no_logins) if results are in SQLite, which has no logins."""
    if not is_postgres():
        text = "Results are in SQLite, which has no logins: use PostgreSQL for results"
        raise Conflict("no_logins", text)


def make_login(actor: Actor, cluster: Cluster) -> str:
    """Return a URL with a new password, by which the actor reads the views of a cluster.

    The former password of the actor ends. Raises `Forbidden`, `Conflict` (no_logins,
    no_schema), and as `require_confirmed`.
    """
    require_viewer(actor, cluster)
    require_confirmed(actor)
    require_factor(actor)
    require_postgres()
    password, group = secrets.token_urlsafe(24), role_of(cluster.slug)
    login = f"{group}.{actor.user.pk}"
    expires_at = timezone.now() + VALID_FOR
    after = {"role": login, "expires_at": expires_at.isoformat(timespec="seconds")}
    with transaction.atomic(), transaction.atomic(RESULTS), results_cursor() as cursor:
        audit.record(actor, "results.login", cluster.slug, cluster=cluster, after=after)
        cursor.execute("SELECT rolname FROM pg_roles WHERE rolname IN (%s, %s)", [group, login])
        known = {name for (name,) in cursor.fetchall()}
        if group not in known:
            text = "The schema of the cluster is not there yet: try again in some seconds"
            raise Conflict("no_schema", text)
        _store(cursor, cluster, group, login, login in known, password, expires_at)
    return login_url(login, password)


def _store(
    cursor: Any,
    cluster: Cluster,
    group: str,
    login: str,
    is_known: bool,
    password: str,
    expires_at: datetime,
) -> None:
    """Create or change a login."""
    role = identifier(login)
    verifier = scram_verifier(login, password)
    if not is_known:
        cursor.execute(f"CREATE ROLE {role} IN ROLE {identifier(group)}")
        cursor.execute(f"GRANT {role} TO CURRENT_USER")
    cursor.execute(
        f"ALTER ROLE {role} LOGIN CONNECTION LIMIT {MAX_CONNECTIONS}"
        f" PASSWORD {quoted(verifier)} VALID UNTIL {quoted(expires_at.isoformat())}"
    )
    for name, value in _SETTINGS.items():
        cursor.execute(f"ALTER ROLE {role} SET {name} = {quoted(value)}")
    cursor.execute(f"ALTER ROLE {role} SET search_path = {identifier(schema_of(cluster))}")


def scram_verifier(login: str, password: str) -> str:
    """Return what PostgreSQL stores in place of a password; the connection must be open."""
    verifier: bytes = connections[RESULTS].connection.pgconn.encrypt_password(
        password.encode(), login.encode(), b"scram-sha-256"
    )
    return verifier.decode()


def login_url(login: str, password: str, *, with_options: bool = False) -> str:
    """Return the URL of the database of results for a login.

    `with_options`: as Weir connects, with files of this machine.
    """
    config = connections[RESULTS].settings_dict
    options = {
        name: value for name, value in config["OPTIONS"].items()
        if with_options and isinstance(value, str)
    }  # fmt: skip
    host, database = str(config["HOST"] or "localhost"), quote(str(config["NAME"]), safe="")
    port = f":{config['PORT']}" if config["PORT"] else ""
    # A folder with a socket cannot be written as a host.
    is_folder = "/" in host
    place = port if is_folder else host + port
    query = urlencode(options | ({"host": host} if is_folder else {}))
    return f"postgresql://{login}:{quote(password, safe='')}@{place}/{database}?{query}".rstrip("?")


def review_logins() -> int:
    """End sessions beyond their limits, drop logins of users without access; return how many."""
    if not is_postgres():
        return 0
    dropped = 0
    with results_cursor() as cursor:
        every = f"{role_of('')}%"
        cursor.execute(_END, [every, MAX_TRANSACTION_S])
        cursor.execute(_LOGINS, [every])
        for (login,) in cursor.fetchall():
            slug, _, user = login.removeprefix(role_of("")).rpartition(".")
            if not _may_read(slug, int(user)):
                drop_login(cursor, login)
                dropped += 1
    return dropped


def _may_read(slug: str, user: int) -> bool:
    cluster, row = Cluster.objects.filter(slug=slug).first(), User.objects.filter(pk=user).first()
    return cluster is not None and row is not None and Actor(row).may(VIEWER, cluster.pk)
