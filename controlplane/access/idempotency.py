"""Idempotency keys: a repeated request has one effect and gets the stored answer.

A key is claimed and its answer is stored in short transactions; between them the request runs
outside of any. The audit entry of a change signs the claim in the transaction of the change: after
a kill before its commit, the request runs again when the lease is over; after a kill behind it, it
does not, as its answer is lost. A request that has lost its claim cannot sign: its change is rolled
back.
"""

import hashlib
import uuid
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.db.models import QuerySet
from django.utils import timezone

from controlplane.errors import Conflict, InProgress, Invalid
from controlplane.models import KeptAnswer
from controlplane.pagination.chunks import delete_in_chunks

KEPT: Final = timedelta(hours=24)
# A key is claimed for so long after a crash; a slower request cannot change anything any more.
LEASE: Final = timedelta(seconds=60)
# An attempt fails only if another request has changed the row in the meantime.
TRIES: Final = 5
# Answers of one user, and bytes of their compressed bodies. The oldest beyond are deleted after
# every large answer, and after one in `_PRUNE_EVERY` others.
MAX_ANSWERS: Final = 10_000
MAX_ANSWER_BYTES: Final = 16 * 1024 * 1024
_LARGE_BYTES: Final = 64 * 1024
_PRUNE_EVERY: Final = 64
# Seconds after which a caller retries while the first request still runs.
_AGAIN_S: Final = 1


@dataclass(frozen=True)
class KeyClaim:
    """A claim of a key: the holder performs the request."""

    pk: int
    name: str
    fingerprint: str

    @property
    def rows(self) -> QuerySet[KeptAnswer]:
        """Return its row; none if the claim was taken over or has its answer."""
        return KeptAnswer.objects.filter(pk=self.pk, claim=self.name, status=None)


_running: ContextVar[KeyClaim | None] = ContextVar("weir_idempotency_claim", default=None)


def fingerprint(*parts: bytes) -> str:
    """Return the fingerprint of a request: of its user, its key, and all that it has."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(len(part).to_bytes(8, "big"))
        digest.update(part)
    return digest.hexdigest()


def claim(user: User, key: str, fingerprint: str) -> KeyClaim | KeptAnswer:
    """Claim a key, or return the answer stored under it.

    Raises `Invalid` (key_reused) if it was used for another request, `InProgress` while that runs,
    and `Conflict` (answer_lost) if that was applied and ended without an answer.
    """
    for _ in range(TRIES):
        now = timezone.now()
        name = uuid.uuid4().hex
        try:
            with transaction.atomic():
                row = KeptAnswer.objects.create(
                    user=user, key=key, fingerprint=fingerprint, claim=name, **_times(now)
                )
            return KeyClaim(row.pk, name, fingerprint)
        except IntegrityError:
            answer = _stored_answer(user, key, fingerprint, name, now)
        if answer is not None:
            return answer
    raise _in_progress(LEASE)


@contextmanager
def running(claimed: KeyClaim) -> Iterator[None]:
    """Let the changes of a block sign the claim."""
    token = _running.set(claimed)
    try:
        yield
    finally:
        _running.reset(token)


def running_fingerprint() -> str:
    """Return the fingerprint of the running request, "" if it has no key."""
    claimed = _running.get()
    return "" if claimed is None else claimed.fingerprint


def sign_claim(request: str) -> None:
    """Mark the claim of the running request, if it has one, as applied by the request with an id.

    Call it in the transaction of the change. Raises `InProgress` if the claim was lost.
    """
    claimed = _running.get()
    if claimed is not None and claimed.rows.update(applied_by=request[:40] or "unknown") != 1:
        raise _in_progress(LEASE)


def store_answer(claimed: KeyClaim, status: int, content_type: str, body: bytes) -> bool:
    """Store the answer, and delete the user's oldest beyond the limits; False if the claim is lost.

    A request that has changed something does not lose its claim.
    """
    packed = zlib.compress(body, 1)
    stored = claimed.rows.update(
        status=status, content_type=content_type[:100], body=packed, size=len(packed)
    )
    if len(packed) > _LARGE_BYTES or claimed.pk % _PRUNE_EVERY == 0:
        _prune_user_of(claimed.pk)
    return stored == 1


def release(claimed: KeyClaim, *, is_refused: bool) -> None:
    """Release a claim without an answer: the next attempt performs the request.

    A request that failed, and was not refused, is not repeated after it has changed something: its
    answer is lost.
    """
    rows = claimed.rows if is_refused else claimed.rows.filter(applied_by="")
    if rows.delete()[0] == 0:
        claimed.rows.update(claimed_until=timezone.now())


def body_of(answer: KeptAnswer) -> bytes:
    """Return the stored body."""
    return zlib.decompress(bytes(answer.body))


def prune(now: datetime) -> int:
    """Delete expired answers; return how many."""
    return delete_in_chunks(KeptAnswer.objects.filter(expires_at__lt=now))


def _prune_user_of(pk: int) -> None:
    """Delete the oldest answers of a row's user beyond the limits; running requests keep theirs."""
    rows = KeptAnswer.objects.filter(user__kept_answers=pk)
    rows = rows.exclude(status=None, claimed_until__gt=timezone.now())
    size, places = 0, rows.order_by("-expires_at", "-pk").values_list("expires_at", "size")
    for count, (expires_at, body_size) in enumerate(places.iterator()):
        size += body_size
        if count >= MAX_ANSWERS or size > MAX_ANSWER_BYTES:
            rows.filter(expires_at__lte=expires_at).delete()
            return


def _stored_answer(
    user: User, key: str, fingerprint: str, name: str, now: datetime
) -> KeyClaim | KeptAnswer | None:
    """Return the stored answer, or an expired claim taken over; None to retry."""
    row = KeptAnswer.objects.filter(user=user, key=key).first()
    if row is None:
        return None
    is_over = row.status is None and row.claimed_until <= now
    if row.expires_at <= now or (is_over and not row.applied_by):
        unchanged = KeptAnswer.objects.filter(
            pk=row.pk, claim=row.claim, status=row.status, applied_by=row.applied_by
        )
        columns = {"fingerprint": fingerprint, "claim": name, "status": None, "body": b""}
        taken = unchanged.update(**columns, size=0, applied_by="", **_times(now))
        return KeyClaim(row.pk, name, fingerprint) if taken == 1 else None
    if row.fingerprint != fingerprint:
        text = "This key was used for another request: choose a new one for each request"
        reused = Invalid({"Idempotency-Key": [text]})
        reused.code = "key_reused"
        raise reused
    if is_over:
        raise _answer_lost(row)
    if row.status is None:
        raise _in_progress(row.claimed_until - now)
    return row


def _times(now: datetime) -> dict[str, datetime]:
    return {"claimed_until": now + LEASE, "expires_at": now + KEPT}


def _in_progress(left: timedelta) -> InProgress:
    text = "The request with this key still runs: ask again for its answer"
    data = {"after_s": max(1, round(left.total_seconds()))}
    return InProgress("in_progress", text, _AGAIN_S, data)


def _answer_lost(row: KeptAnswer) -> Conflict:
    text = (
        "The request with this key was applied, and ended before its answer was stored: the audit"
        " log has what it changed, by the id in `data`. Only a new key applies it again"
    )
    return Conflict("answer_lost", text, {"key": row.key, "request": row.applied_by})
