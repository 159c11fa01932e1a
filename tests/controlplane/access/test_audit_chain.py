"""The hash chain over the audit log reports what SQL changes; triggers refuse to change it."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.db import IntegrityError, connection, transaction
from django.utils import timezone

from controlplane.access import audit, audit_chain, audit_triggers
from controlplane.access.audit_chain import ChainFault, verify
from controlplane.access.roles import Actor, Automatic
from controlplane.models import AuditChain, AuditEntry
from tests.support.cluster import actor
from workers.tasks import verify_audit

pytestmark = [pytest.mark.both_databases, pytest.mark.django_db]
TABLE = audit_triggers.ENTRIES


@pytest.fixture
def entries(db: None) -> Iterator[list[AuditEntry]]:
    """Six sealed entries with triggers that refuse to change them."""
    audit_triggers.install(connection)
    by = actor("admin")
    for index in range(6):
        audit.record(by, "test.change", f"object {index}", after={"rate": 0.1 * index, "to": "é"})
    assert verify().is_intact
    yield list(AuditEntry.objects.order_by("sequence"))
    audit_triggers.remove(connection)


def test_a_long_log_is_verified_by_a_worker(
    entries: list[AuditEntry], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The request sends the task and returns the result before; the task has the noted head."""
    sent: list[tuple[Any, ...]] = []
    monkeypatch.setattr(audit_chain, "MOST_AT_ONCE", len(entries) - 1)
    monkeypatch.setattr(audit_chain, "send_on_commit", lambda *task: sent.append(task))
    before = audit_chain.last_verification()
    done = audit_chain.request_verification(actor("admin", "b"), (1, "0" * 64))
    assert (done.is_pending, done.verified_at) == (True, before.verified_at)
    ((name, *noted),) = sent
    assert name == verify_audit.name
    verify_audit(*noted)
    assert audit_chain.last_verification().fault == ChainFault("head", 1, entries[0].pk)
    monkeypatch.setattr(audit_chain, "MOST_AT_ONCE", len(entries) + 10)
    assert not audit_chain.request_verification(actor("admin", "c")).is_pending


def sql(statement: str) -> None:
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(statement)


def test_triggers_refuse_to_change_entries(entries: list[AuditEntry]) -> None:
    pk = entries[2].pk
    audit.record(actor("admin", "b"), "test.unsealed", "an entry that is not sealed yet")
    for statement in (
        f"UPDATE {TABLE} SET actor = 'nobody' WHERE id = {pk}",
        f"UPDATE {TABLE} SET hash = '' WHERE id = {pk}",
        f"UPDATE {TABLE} SET reason = 'x' WHERE sequence IS NULL",
        f"DELETE FROM {TABLE} WHERE id = {pk}",
        f"DELETE FROM {TABLE} WHERE sequence IS NULL",
        f"DELETE FROM {audit_triggers.CHAIN}",
    ):
        with pytest.raises(IntegrityError):
            sql(statement)
    assert verify() == audit_chain.last_verification()
    assert verify().is_intact


@pytest.mark.parametrize(
    ("statement", "code", "place"),
    [
        ("UPDATE {table} SET reason = 'another' WHERE sequence = 3", "changed", 3),
        ("UPDATE {table} SET address = '192.0.2.99' WHERE sequence IN (5, 4)", "changed", 4),
        ("DELETE FROM {table} WHERE sequence = 2", "missing", 2),
        ("DELETE FROM {table} WHERE sequence <= 2", "missing", 1),
        ("DELETE FROM {table} WHERE sequence >= 5", "end", 5),
        ("DELETE FROM {table}", "end", 1),
        ("UPDATE controlplane_auditchain SET sequence = 4", "end", 4),
        ("UPDATE controlplane_auditchain SET start_sequence = 2", "changed", 3),
        ("DELETE FROM controlplane_auditchain", "end", 1),
    ],
)
def test_verification_names_the_first_bad_entry(
    entries: list[AuditEntry], statement: str, code: str, place: int
) -> None:
    """A role that drops the triggers can change rows, but not unnoticed."""
    audit_triggers.remove(connection)
    sql(statement.format(table=TABLE))
    audit_triggers.install(connection)
    fault = verify().fault
    assert fault is not None
    assert (fault.code, fault.sequence) == (code, place)
    if code == "changed":
        assert fault.entry == entries[place - 1].pk


def test_missing_triggers_are_a_fault(entries: list[AuditEntry]) -> None:
    audit_triggers.remove(connection)
    assert verify().fault == ChainFault("triggers")


def test_a_chain_that_was_computed_again_differs_from_a_noted_head(
    entries: list[AuditEntry],
) -> None:
    head = verify()
    audit_triggers.remove(connection)
    sql(f"UPDATE {TABLE} SET reason = 'another' WHERE sequence = 3")
    sql(f"UPDATE {TABLE} SET sequence = NULL, hash = ''")
    AuditChain.objects.update(sequence=0, hash="")
    audit_triggers.install(connection)
    assert verify().is_intact
    noted = verify((head.sequence, head.hash))
    assert noted.fault == ChainFault("head", head.sequence, entries[-1].pk)


def test_pruning_keeps_the_chain_verifiable(entries: list[AuditEntry]) -> None:
    by = Automatic("housekeeping")
    assert audit_chain.prune(by, timezone.now() - timedelta(days=1)) == 0
    assert audit_chain.prune(by, timezone.now(), limit=4) == 4
    done = verify()
    assert done.is_intact
    # Two are left, and the entry about the pruning.
    assert (done.entries, done.sequence) == (3, 7)
    assert AuditEntry.objects.get(action=audit_chain.PRUNED).after["last"] == 4
    # A start that no entry declares.
    AuditChain.objects.update(start_sequence=5, start_hash=entries[4].hash)
    sql(f"DELETE FROM {TABLE} WHERE sequence <= 5")
    assert verify().fault == ChainFault("checkpoint", 5)


def test_entries_are_sealed_in_batches(db: None) -> None:
    by: Actor = actor("admin")
    for index in range(5):
        audit.record(by, "test.change", f"object {index}")
    assert [audit_chain.seal(limit=2) for _ in range(4)] == [2, 2, 1, 0]
    sequences = AuditEntry.objects.order_by("pk").values_list("sequence", flat=True)
    assert list(sequences) == [1, 2, 3, 4, 5]
