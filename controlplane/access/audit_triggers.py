"""Triggers of the database that refuse to change or delete entries of the audit log.

An entry may be sealed once, and deleted once the chain starts after it
(`controlplane.access.audit_chain`). A role that may change the schema can drop the triggers; the
verification of the chain reports their absence, and what was changed meanwhile.
"""

from typing import Final

from django.db.backends.base.base import BaseDatabaseWrapper

ENTRIES: Final = "controlplane_auditentry"
CHAIN: Final = "controlplane_auditchain"
# What an entry states; the other columns are its place in the chain.
_COLUMNS: Final = (
    '"id", "at", "actor", "address", "cluster_id", "action", "object", "request", "seal",'
    ' "reason", "before", "after"'
)
_MESSAGE: Final = "the audit log is append-only"
_IS_KEPT: Final = (
    f"OLD.sequence IS NULL OR OLD.sequence > COALESCE((SELECT max(start_sequence) FROM {CHAIN}), 0)"  # noqa: S608
)
_REFUSE: Final = f"BEGIN SELECT RAISE(ABORT, '{_MESSAGE}'); END"
# By name: what follows CREATE TRIGGER <name>. INSERT OR REPLACE of SQLite deletes without DELETE.
_SQLITE: Final = {
    "audit_no_update": f"BEFORE UPDATE OF {_COLUMNS} ON {ENTRIES} {_REFUSE}",
    "audit_sealed_once": (
        f'BEFORE UPDATE OF "sequence", "hash" ON {ENTRIES} WHEN OLD.sequence IS NOT NULL {_REFUSE}'
    ),
    "audit_no_delete": f"BEFORE DELETE ON {ENTRIES} WHEN {_IS_KEPT} {_REFUSE}",
    "audit_no_replace": (
        f"BEFORE INSERT ON {ENTRIES}"  # noqa: S608 - the name of a table of this module
        f" WHEN EXISTS (SELECT 1 FROM {ENTRIES} WHERE id = NEW.id) {_REFUSE}"
    ),
    "audit_chain_kept": f"BEFORE DELETE ON {CHAIN} {_REFUSE}",
}
_REFUSING: Final = "EXECUTE FUNCTION weir_refuse_audit_change()"
_POSTGRESQL: Final = {
    "audit_no_update": f"BEFORE UPDATE OF {_COLUMNS} ON {ENTRIES} FOR EACH ROW {_REFUSING}",
    "audit_sealed_once": (
        f'BEFORE UPDATE OF "sequence", "hash" ON {ENTRIES}'
        f" FOR EACH ROW WHEN (OLD.sequence IS NOT NULL) {_REFUSING}"
    ),
    "audit_no_delete": f"BEFORE DELETE ON {ENTRIES} FOR EACH ROW {_REFUSING}",
    "audit_no_truncate": f"BEFORE TRUNCATE ON {ENTRIES} {_REFUSING}",
    "audit_chain_kept": f"BEFORE DELETE OR TRUNCATE ON {CHAIN} {_REFUSING}",
}
_FUNCTION: Final = f"""
CREATE OR REPLACE FUNCTION weir_refuse_audit_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_NAME = 'audit_no_delete' AND NOT ({_IS_KEPT}) THEN
        RETURN OLD;
    END IF;
    RAISE EXCEPTION '{_MESSAGE}' USING ERRCODE = 'restrict_violation';
END $$
"""
_OF_SQLITE: Final = "SELECT name FROM sqlite_master WHERE type = 'trigger'"
_OF_POSTGRESQL: Final = "SELECT tgname FROM pg_trigger WHERE NOT tgisinternal AND tgenabled <> 'D'"


def install(connection: BaseDatabaseWrapper) -> None:
    """Create the triggers that are missing."""
    missing = missing_triggers(connection)
    if not missing:
        return
    declared = _declared(connection)
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute(_FUNCTION)
        for name in missing:
            _drop(cursor, connection, name)
            cursor.execute(f"CREATE TRIGGER {name} {declared[name]}")


def remove(connection: BaseDatabaseWrapper) -> None:
    """Drop the triggers: for a migration that must change entries, which breaks their chain."""
    with connection.cursor() as cursor:
        for name in _declared(connection):
            _drop(cursor, connection, name)


def missing_triggers(connection: BaseDatabaseWrapper) -> list[str]:
    """Return the names of the triggers that the database lacks, or has switched off."""
    of_vendor = _OF_POSTGRESQL if connection.vendor == "postgresql" else _OF_SQLITE
    with connection.cursor() as cursor:
        cursor.execute(of_vendor)
        known = {name for (name,) in cursor.fetchall()}
    return [name for name in _declared(connection) if name not in known]


def _declared(connection: BaseDatabaseWrapper) -> dict[str, str]:
    return _POSTGRESQL if connection.vendor == "postgresql" else _SQLITE


def _drop(cursor: object, connection: BaseDatabaseWrapper, name: str) -> None:
    table = CHAIN if name == "audit_chain_kept" else ENTRIES
    of_table = f" ON {table}" if connection.vendor == "postgresql" else ""
    cursor.execute(f"DROP TRIGGER IF EXISTS {name}{of_table}")  # type: ignore[attr-defined]
