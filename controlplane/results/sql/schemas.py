"""Schemas of PostgreSQL with the views of each cluster, and the role that may read them.

They follow from the rows of clusters, streams and queries. A pass of the beat compares them with
the catalog of the database, in which the comment of a view has the digest of what it was made from.
So the next pass continues one that was killed. What others made from a view is dropped with it.
"""

import logging
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from django.db import Error, transaction
from django.db.models import Max

from controlplane.models import Cluster, Query
from controlplane.results.database import RESULTS, is_postgres, results_cursor
from controlplane.results.sql.columns import identifier, postgres_select, quoted
from controlplane.results.sql.views import ResultView, schema_of, view_digests

logger = logging.getLogger(__name__)

# Views that one pass changes at most; the next one continues.
MOST_CHANGED: Final = 500
# The comment of a schema that is Weir's.
_OURS: Final = "Results of a cluster of Weir: "
_LOCK_WAIT: Final = "2s"
# Two processes may change schemas and roles at once.
_CATALOG_LOCK: Final = "SELECT pg_advisory_xact_lock(hashtext('weir_views'))"
_VIEWS: Final = (
    "SELECT c.relname, COALESCE(obj_description(c.oid, 'pg_class'), '') FROM pg_class c"
    " JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = %s AND c.relkind = 'v'"
)
# With the name of a login; waits until they have ended.
END_SESSIONS: Final = (
    "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE usename = %s"
)
_SCHEMAS: Final = (
    "SELECT nspname, substr(obj_description(oid, 'pg_namespace'), %s) FROM pg_namespace"
    " WHERE obj_description(oid, 'pg_namespace') LIKE %s"
)
# What the views of a cluster were compared with last, in this process.
_seen: dict[int, tuple[Any, ...]] = {}
_failed: dict[str, str] = {}


def database_number() -> int:
    """Return the id of the database in its server, which may have several Weirs."""
    with results_cursor() as cursor:
        cursor.execute("SELECT oid FROM pg_database WHERE datname = current_database()")
        return int(cursor.fetchone()[0])


def role_of(slug: str) -> str:
    """Return the role that may read the views of a cluster."""
    return f"weir.{database_number()}.{slug}"


def driver_of(slug: str) -> str:
    """Return the login of the driver of a cluster."""
    return f"weir-driver.{database_number()}.{slug}"


def update_views() -> int:
    """Create, replace and drop schemas and views; return how many views changed.

    An error in one cluster is logged once, and does not affect the others.
    """
    if not is_postgres():
        return 0
    changed = 0
    clusters = list(Cluster.objects.order_by("pk"))
    for cluster in clusters:
        newest = Query.objects.filter(cluster=cluster).aggregate(pk=Max("pk"))["pk"]
        state = cluster.slug, cluster.created_at, cluster.routing_version, newest
        if _seen.get(cluster.pk) == state:
            continue
        count = _logged(cluster.slug, partial(_update_cluster, cluster))
        if count is None:
            continue
        changed += count
        if count < MOST_CHANGED:
            _seen[cluster.pk] = state
    _logged("deleted clusters", partial(_drop_others, {cluster.slug for cluster in clusters}))
    return changed


def _logged(name: str, work: Callable[[], int]) -> int | None:
    """Return what a step returns; None after an error, which is logged if it is another one."""
    try:
        result = work()
    except Error as error:
        if _failed.get(name) != str(error):
            logger.warning("The views of %s were not updated: %s", name, error)
        _failed[name] = str(error)
        return None
    _failed.pop(name, None)
    return result


def _update_cluster(cluster: Cluster) -> int:
    schema, role = schema_of(cluster), role_of(cluster.slug)
    with transaction.atomic(RESULTS), results_cursor() as cursor:
        cursor.execute(_CATALOG_LOCK)
        cursor.execute(_SCHEMAS, [len(_OURS) + 1, f"{_OURS}%"])
        if schema not in dict(cursor.fetchall()):
            cursor.execute(f"CREATE SCHEMA {identifier(schema)}")
            cursor.execute(
                f"COMMENT ON SCHEMA {identifier(schema)} IS {quoted(_OURS + cluster.slug)}"
            )
        _create_role(cursor, schema, role)
        cursor.execute(_VIEWS, [schema])
        known = dict(cursor.fetchall())
        return _update_views(cursor, schema, role, known, view_digests(cluster))


def _create_role(cursor: Any, schema: str, role: str) -> None:
    """Create the role of a cluster if it does not exist, as in a database that was restored."""
    cursor.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", [role])
    if cursor.fetchone() is None:
        cursor.execute(f"CREATE ROLE {identifier(role)} NOLOGIN")
        # Of PostgreSQL 16: statements of pages take the role.
        cursor.execute(f"GRANT {identifier(role)} TO CURRENT_USER")
        place = f"SCHEMA {identifier(schema)} TO {identifier(role)}"
        cursor.execute(f"GRANT USAGE ON {place}")
        cursor.execute(f"GRANT SELECT ON ALL TABLES IN {place}")


def _update_views(
    cursor: Any,
    schema: str,
    role: str,
    known: Mapping[str, str],
    wanted: Mapping[int, tuple[str, str]],
) -> int:
    """Make the views of a schema what they should be; return how many changed."""
    cursor.execute(f"SET LOCAL lock_timeout = '{_LOCK_WAIT}'")
    digests = dict(wanted.values())
    dropped = [name for name in known if name not in digests][:MOST_CHANGED]
    for name in dropped:
        cursor.execute(f"DROP VIEW {identifier(schema)}.{identifier(name)} CASCADE")
    stale = [pk for pk, (name, digest) in wanted.items() if known.get(name) != digest]
    stale = stale[: MOST_CHANGED - len(dropped)]
    for query in Query.objects.filter(pk__in=stale).prefetch_related("streams"):
        name, digest = wanted[query.pk]
        view = f"{identifier(schema)}.{identifier(name)}"
        select = postgres_select(query.pk, ResultView(query).columns)
        # Dropped, as a replaced view keeps the types of its columns.
        cursor.execute(f"DROP VIEW IF EXISTS {view} CASCADE")
        # A barrier: no function of a statement gets rows of other queries.
        cursor.execute(f"CREATE VIEW {view} WITH (security_barrier) AS {select}")
        cursor.execute(f"COMMENT ON VIEW {view} IS {quoted(digest)}")
        cursor.execute(f"GRANT SELECT ON {view} TO {identifier(role)}")
    return len(dropped) + len(stale)


def _drop_others(slugs: set[str]) -> int:
    """Drop the schemas and roles of clusters that do not exist any more; return how many."""
    with results_cursor() as cursor:
        cursor.execute(_SCHEMAS, [len(_OURS) + 1, f"{_OURS}%"])
        others = [(schema, slug) for schema, slug in cursor.fetchall() if slug not in slugs]
        for schema, slug in others:
            drop_login(cursor, driver_of(slug))
            with transaction.atomic(RESULTS):
                cursor.execute(f"DROP SCHEMA {identifier(schema)} CASCADE")
                cursor.execute(f"DROP ROLE IF EXISTS {identifier(role_of(slug))}")
    return len(others)


def drop_login(cursor: Any, login: str) -> None:
    """Drop a login if there is one, after its sessions, which may own temporary tables."""
    cursor.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", [login])
    if cursor.fetchone() is not None:
        cursor.execute(f"ALTER ROLE {identifier(login)} NOLOGIN")
        cursor.execute(END_SESSIONS, [login])
        cursor.execute(f"DROP ROLE {identifier(login)}")
