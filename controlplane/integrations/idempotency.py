"""Idempotency keys: a repeated request has one effect and gets the stored answer.

A key is claimed by inserting its row. The work and the keeping of its answer are one transaction:
if the process dies in between, neither has happened, and after the lease another try may claim the
key. A request that lost its claim meanwhile cannot keep its answer, and its work is rolled
back with that.
"""

import hashlib
import uuid
import zlib
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.utils import timezone

from controlplane.errors import Conflict
from controlplane.models import KeptAnswer
from controlplane.pagination.chunks import delete_in_chunks

KEPT: Final = timedelta(hours=24)
# A key is claimed for so long after a crash; a slower request is rolled back and repeated.
LEASE: Final = timedelta(seconds=60)
# An attempt fails only if another request has changed the row in the meantime.
TRIES: Final = 5


@dataclass(frozen=True)
class Claim:
    """A claim of a key: the holder performs the request."""

    pk: int
    name: str


def fingerprint(*parts: bytes) -> str:
    """Return the fingerprint that identifies a request."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(len(part).to_bytes(8, "big"))
        digest.update(part)
    return digest.hexdigest()


def claim(user: User, key: str, fingerprint: str) -> Claim | KeptAnswer:
    """Claim a key, or return the answer stored under it.

    Raises `Conflict`: key_reused if it was used for another request, in_progress while that runs.
    """
    for _ in range(TRIES):
        now = timezone.now()
        name = uuid.uuid4().hex
        try:
            with transaction.atomic():
                row = KeptAnswer.objects.create(
                    user=user, key=key, fingerprint=fingerprint, claim=name, **_times(now)
                )
            return Claim(row.pk, name)
        except IntegrityError:
            answer = _stored_answer(user, key, fingerprint, name, now)
        if answer is not None:
            return answer
    raise _in_progress(LEASE)


def store_answer(claimed: Claim, status: int, content_type: str, body: bytes) -> None:
    """Store the answer in the transaction of the work. Raises `Conflict` if the claim was lost."""
    claimed_rows = KeptAnswer.objects.filter(pk=claimed.pk, claim=claimed.name, status=None)
    packed = zlib.compress(body, 1)
    if claimed_rows.update(status=status, content_type=content_type[:100], body=packed) != 1:
        raise _in_progress(LEASE)


def release(claimed: Claim) -> None:
    """Release a claim, so that the next attempt performs the request."""
    KeptAnswer.objects.filter(pk=claimed.pk, claim=claimed.name, status=None).delete()


def body_of(answer: KeptAnswer) -> bytes:
    """Return the stored body."""
    return zlib.decompress(bytes(answer.body))


def prune(now: datetime) -> int:
    """Delete expired answers; return how many."""
    return delete_in_chunks(KeptAnswer.objects.filter(expires_at__lt=now))


def _stored_answer(
    user: User, key: str, fingerprint: str, name: str, now: datetime
) -> Claim | KeptAnswer | None:
    """Return the stored answer, or an expired claim taken over; None to retry."""
    row = KeptAnswer.objects.filter(user=user, key=key).first()
    if row is None:
        return None
    if row.expires_at <= now or (row.status is None and row.claimed_until <= now):
        claimed_rows = KeptAnswer.objects.filter(pk=row.pk, claim=row.claim, status=row.status)
        columns = {"fingerprint": fingerprint, "claim": name, "status": None, "body": b""}
        taken = claimed_rows.update(**columns, **_times(now))
        return Claim(row.pk, name) if taken == 1 else None
    if row.fingerprint != fingerprint:
        text = "This key was used for another request: choose a new one for each request"
        raise Conflict("key_reused", text, {"key": key})
    if row.status is None:
        raise _in_progress(row.claimed_until - now)
    return row


def _times(now: datetime) -> dict[str, datetime]:
    return {"claimed_until": now + LEASE, "expires_at": now + KEPT}


def _in_progress(left: timedelta) -> Conflict:
    text = "The request with this key still runs: ask again for its answer"
    return Conflict("in_progress", text, {"after_s": max(1, round(left.total_seconds()))})
