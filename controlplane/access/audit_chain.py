"""The hash chain over the audit log: sealing, verification and pruning of entries.

Entries are written without a place in the chain, so their transactions wait for no lock. `seal`
gives each committed entry the next sequence number and the hash over its content and the previous
hash; the beat calls it every few seconds, and each verification first. Decision 0052.
"""

import hashlib
import json
import logging
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final

from django.db import connections, router, transaction
from django.utils import timezone

from controlplane.access import audit, audit_triggers
from controlplane.access.roles import ADMIN, Actor, require
from controlplane.events.task_names import VERIFY_AUDIT, send_on_commit
from controlplane.models import AuditChain, AuditEntry

logger = logging.getLogger(__name__)

PRUNED: Final = "audit.prune"
BATCH: Final = 1000
# Entries that a request verifies itself, in a second or two; a worker verifies a longer log.
MOST_AT_ONCE: Final = 20_000
# Of verifications that met a prune and begin again.
_ATTEMPTS: Final = 3
_FORMAT: Final = "weir-audit-1"


@dataclass(frozen=True)
class ChainFault:
    """The first fault of the chain.

    `code`: changed (the content of an entry), missing (an entry inside the chain), end (entries
    after the last one, or the row of the chain), checkpoint (entries before the first one, which
    no entry of the log declares as pruned), head (the chain has another hash at the noted place),
    triggers (the database lacks them). `sequence`: the place in the chain; `entry`: the id of the
    entry, None if it is gone.
    """

    code: str
    sequence: int | None = None
    entry: int | None = None


@dataclass(frozen=True)
class Verification:
    """The result of a verification: `sequence` and `hash` are those of the newest sealed entry.

    `entries`: the number of verified entries; `fault`: the first fault, None if the chain is
    intact; `verified_at`: None if the chain was never verified. `is_pending`: a worker was asked
    for a verification, and this is the result of the one before.
    """

    verified_at: datetime | None
    entries: int
    sequence: int
    hash: str
    fault: ChainFault | None
    is_pending: bool = False

    @property
    def is_intact(self) -> bool:
        """Return True if the verification took place and reported no fault."""
        return self.verified_at is not None and self.fault is None


def entry_hash(previous: str, sequence: int, entry: Any) -> str:
    """Return the hash of an entry at a place in the chain, after the hash `previous`."""
    content = [
        _FORMAT, previous, sequence, entry.pk,
        entry.at.astimezone(UTC).isoformat(timespec="microseconds"),
        entry.actor, entry.address, entry.cluster_id, entry.action, entry.object, entry.request,
        entry.seal, entry.reason, entry.before, entry.after,
    ]  # fmt: skip
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def seal(limit: int = BATCH) -> int:
    """Append committed entries to the chain, the oldest first; return their number."""
    pending = AuditEntry.objects.filter(sequence=None).order_by("pk")
    # Without a write lock if there is nothing to do.
    if not pending.exists():
        return 0
    using = router.db_for_write(AuditEntry)
    with transaction.atomic(using=using):
        # Locked, so that two sealers append after each other.
        chain, is_new = AuditChain.objects.select_for_update().get_or_create(pk=1)
        if is_new and AuditEntry.objects.exclude(sequence=None).exists():
            # The row was deleted: a new one would hide that. Verification reports it.
            transaction.set_rollback(True, using=using)
            return 0
        places = []
        for entry in pending[:limit]:
            chain.sequence += 1
            chain.hash = entry_hash(chain.hash, chain.sequence, entry)
            places.append((chain.sequence, chain.hash, entry.pk))
        table = connections[using].ops.quote_name(AuditEntry._meta.db_table)  # noqa: SLF001
        with connections[using].cursor() as cursor:
            cursor.executemany(
                f"UPDATE {table} SET sequence = %s, hash = %s WHERE id = %s",  # noqa: S608
                places,
            )
        chain.save(update_fields=["sequence", "hash"])
    return len(places)


def verify(noted: tuple[int, str] | None = None) -> Verification:
    """Seal and verify the whole chain, store the result and return it.

    `noted`: sequence and hash of the head as an earlier verification returned them; who can write
    every row and drop the triggers could compute the chain again, but not to the noted hash.
    """
    while seal():
        pass
    for _ in range(_ATTEMPTS):
        chain = _chain()
        entries, fault = _walk(chain)
        if _chain().start_sequence == chain.start_sequence:
            break
    fault = fault or _fault_of_ends(chain) or _fault_of_noted(chain, noted) or _fault_of_triggers()
    done = Verification(timezone.now(), entries, chain.sequence, chain.hash, fault)
    AuditChain.objects.filter(pk=1).update(
        verified_at=done.verified_at,
        verified_sequence=chain.sequence,
        fault=fault.code if fault else "",
        fault_sequence=fault.sequence if fault else None,
        fault_entry=fault.entry if fault else None,
    )
    _log(done)
    return done


def request_verification(actor: Actor, noted: tuple[int, str] | None = None) -> Verification:
    """Return `verify(noted)` for an admin of all clusters. Raises `Forbidden`.

    A chain of more than `MOST_AT_ONCE` entries is verified by a worker instead.
    """
    require(actor, ADMIN)
    chain = _chain()
    unsealed = AuditEntry.objects.filter(sequence=None).count()
    if chain.sequence - chain.start_sequence + unsealed <= MOST_AT_ONCE:
        return verify(noted)
    send_on_commit(VERIFY_AUDIT, *(noted or ()))
    return replace(last_verification(), is_pending=True)


def last_verification() -> Verification:
    """Return the stored result of the last verification."""
    chain = _chain()
    fault = (
        ChainFault(chain.fault, chain.fault_sequence, chain.fault_entry) if chain.fault else None
    )
    entries = chain.verified_sequence - chain.start_sequence if chain.verified_at else 0
    return Verification(chain.verified_at, max(0, entries), chain.sequence, chain.hash, fault)


@transaction.atomic
def prune(actor: Actor, before: datetime, limit: int = BATCH) -> int:
    """Delete the oldest entries if they are older than `before`, at most `limit`; return how many.

    The chain then starts after them: it keeps the hash of the last deleted entry, and an entry of
    the log declares it.
    """
    seal(limit)
    chain = AuditChain.objects.select_for_update().filter(pk=1).first()
    if chain is None:
        return 0
    oldest = AuditEntry.objects.filter(sequence__gt=chain.start_sequence).order_by("sequence")
    last, count = None, 0
    for entry in oldest.only("sequence", "hash", "at")[:limit]:
        if entry.at >= before:
            break
        last, count = entry, count + 1
    if last is None:
        return 0
    chain.start_sequence, chain.start_hash = last.sequence or 0, last.hash
    chain.save(update_fields=["start_sequence", "start_hash"])
    with connections[router.db_for_write(AuditEntry)].cursor() as cursor:
        # The model refuses to delete; the triggers allow it before the start of the chain.
        cursor.execute(
            f"DELETE FROM {audit_triggers.ENTRIES} WHERE sequence <= %s",  # noqa: S608
            [chain.start_sequence],
        )
    after = {"entries": count, "last": chain.start_sequence, "hash": chain.start_hash}
    audit.record(actor, PRUNED, f"entries before {before.isoformat(timespec='seconds')}",
                 after=after)  # fmt: skip
    return count


def _chain() -> AuditChain:
    return AuditChain.objects.filter(pk=1).first() or AuditChain()


def _walk(chain: AuditChain) -> tuple[int, ChainFault | None]:
    """Return the number of entries with a correct hash, and the first fault among the others."""
    sequence, previous = chain.start_sequence, chain.start_hash
    while sequence < chain.sequence:
        rows = AuditEntry.objects.filter(sequence__gt=sequence, sequence__lte=chain.sequence)
        batch = list(rows.order_by("sequence")[:BATCH])
        if not batch:
            return sequence - chain.start_sequence, ChainFault("end", sequence + 1)
        for entry in batch:
            if entry.sequence != sequence + 1:
                return sequence - chain.start_sequence, ChainFault("missing", sequence + 1)
            if entry.hash != entry_hash(previous, entry.sequence, entry):
                fault = ChainFault("changed", entry.sequence, entry.pk)
                return sequence - chain.start_sequence, fault
            sequence, previous = entry.sequence, entry.hash
    is_whole = previous == chain.hash
    return sequence - chain.start_sequence, None if is_whole else ChainFault("end", chain.sequence)


def _fault_of_ends(chain: AuditChain) -> ChainFault | None:
    beyond = AuditEntry.objects.filter(sequence__gt=chain.sequence).order_by("sequence").first()
    if beyond is not None and _chain().sequence == chain.sequence:
        return ChainFault("end", beyond.sequence, beyond.pk)
    declared = AuditEntry.objects.filter(
        action=PRUNED, after__last=chain.start_sequence, after__hash=chain.start_hash
    )
    if chain.start_sequence and not declared.exists():
        return ChainFault("checkpoint", chain.start_sequence)
    return None


def _fault_of_noted(chain: AuditChain, noted: tuple[int, str] | None) -> ChainFault | None:
    if noted is None:
        return None
    sequence, noted_hash = noted
    if sequence == chain.start_sequence:
        return None if noted_hash == chain.start_hash else ChainFault("head", sequence)
    entry = AuditEntry.objects.filter(sequence=sequence).first()
    if entry is not None and entry.hash == noted_hash:
        return None
    return ChainFault("head", sequence, entry.pk if entry else None)


def _fault_of_triggers() -> ChainFault | None:
    missing = audit_triggers.missing_triggers(connections[router.db_for_write(AuditEntry)])
    return ChainFault("triggers") if missing else None


def _log(done: Verification) -> None:
    # The log may be kept elsewhere: a head there reveals a chain that was computed again.
    if done.fault is None:
        logger.info("The audit log is intact: head %d:%s", done.sequence, done.hash)
    else:
        logger.error("The audit log is not intact: %s; head %d:%s",
                     done.fault, done.sequence, done.hash)  # fmt: skip
