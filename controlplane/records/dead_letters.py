"""Dead letters: storage of a request's faulty records, replay and deletion."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import islice
from typing import Any, Final
from uuid import uuid4

from controlplane.access import audit
from controlplane.access.roles import Actor, require_operator
from controlplane.catalog.computations import schema_of
from controlplane.connections import redis_client
from controlplane.errors import BadBody, Conflict, Invalid
from controlplane.models import Cluster, Stream
from controlplane.records import append
from controlplane.records.bodies import check_zone
from controlplane.records.bodies.conformance import Conformed, reason_of
from controlplane.records.dead_letter_list import (
    CURSOR,
    DeadLetterFilters,
    chosen_letters,
    letters_of,
    number_of,
)
from controlplane.records.decoding import conform_letter
from controlplane.wire import dead_letters
from controlplane.wire.dead_letters import DeadLetter, Reason
from controlplane.wire.log.values import IdempotencyToken
from controlplane.wire.records.conversion import MAX_FAULTS
from controlplane.wire.records.record_codec import times_ms
from controlplane.wire.schema import StreamSchema

# A request with more faulty records than this is rejected.
MAX_BAD: Final = min(MAX_FAULTS, dead_letters.MAX_OF_BATCH)
# Dead letters that one call replays, and that are removed together.
MAX_REPLAY: Final = 1_000
MAX_IDS: Final = 1_000
_CHUNK: Final = 50
_SHOWN: Final = 20


@dataclass(frozen=True)
class DeadLetterSelection:
    """A selection of dead letters: by id, or by the filters if `ids` is None."""

    ids: Sequence[str] | None = None
    filters: DeadLetterFilters = field(default_factory=DeadLetterFilters)


@dataclass
class Replayed:
    """The outcome of a replay: the number of appended dead letters, and the faults of the others.

    `left`: how many were tried and stay; `faults`: the first of them, by id. `next`: the cursor
    after which the untried ones begin, None if all were tried.
    """

    appended: int = 0
    left: int = 0
    faults: dict[str, str] = field(default_factory=dict)
    next: str | None = None


def store_faulty(stream: Stream, conformed: Conformed, token: IdempotencyToken | None) -> None:
    """Store the faulty records of a body as dead letters; idempotent for a request with a token."""
    place = _place(token)
    letters = [
        DeadLetter(stream.pk, place, index, Reason.BODY, why, text.encode())
        for index, why, text in conformed.faulty()
    ]
    if letters and dead_letters.keep(redis_client(), stream.cluster.slug, letters):
        dead_letters.add_count(
            redis_client(), stream.cluster.slug, stream.pk, Reason.BODY, len(letters)
        )


def _place(token: IdempotencyToken | None) -> str:
    """Return a substitute position for records that were never in the log."""
    if token is None:
        return f"request-{uuid4().hex[:16]}"
    name = f"{token.producer}\0{token.sequence}".encode()
    return f"request-{blake2b(name, digest_size=8).hexdigest()}"


def replay(
    actor: Actor, cluster: Cluster, choice: DeadLetterSelection, zone: str = "", after: str = ""
) -> Replayed:
    """Append dead letters again, under the present schemas of their streams.

    `zone`: the IANA time zone of times that name none, as of the request that they came with.
    `after`: the cursor after which they begin, the oldest first.

    An appended dead letter is removed. Each has its own idempotency token, so that an interrupted
    call can be repeated. At most `MAX_REPLAY` at once. Raises `Forbidden`, `Invalid`, `Busy`,
    `Away`.
    """
    require_operator(actor, cluster)
    check_zone(zone)
    letters = list(islice(_chosen(cluster, choice, number_of(after)), MAX_REPLAY + 1))
    more = len(letters) > MAX_REPLAY
    done = Replayed(next=CURSOR.text(letters[MAX_REPLAY - 1].number) if more else None)
    run = _Replay(actor, cluster, zone, done)
    try:
        for begin in range(0, min(len(letters), MAX_REPLAY), _CHUNK):
            run.append_all(letters[begin : min(begin + _CHUNK, MAX_REPLAY)])
    finally:
        if done.appended:
            counts = {"appended": done.appended, "left": done.left}
            subject = f"{done.appended} dead letters"
            audit.record(actor, "dead_letters.replay", subject, cluster=cluster, after=counts)
    return done


def delete(actor: Actor, cluster: Cluster, choice: DeadLetterSelection, reason: str = "") -> int:
    """Delete dead letters; return how many. Raises `Forbidden`, `Invalid`."""
    require_operator(actor, cluster)
    removed = 0
    chosen = (letter.id for letter in _chosen(cluster, choice))
    while ids := list(islice(chosen, MAX_IDS)):
        removed += dead_letters.remove(redis_client(), cluster.slug, ids)
    if removed:
        subject, before = f"{removed} dead letters", {"ids": list(choice.ids or ())[:_SHOWN]}
        audit.record(
            actor, "dead_letters.delete", subject, cluster=cluster, reason=reason, before=before
        )
    return removed


def _chosen(cluster: Cluster, choice: DeadLetterSelection, after: int = 0) -> Iterator[DeadLetter]:
    if choice.ids is None:
        return chosen_letters(cluster, choice.filters, after)
    if len(choice.ids) > MAX_IDS:
        raise Invalid({"ids": [f"Give at most {MAX_IDS:,}, not {len(choice.ids):,}"]})
    return iter(letters_of(cluster, list(choice.ids)))


@dataclass
class _Replay:
    """One replay; `known`: the streams of the cluster with their schemas, each read once."""

    actor: Actor
    cluster: Cluster
    zone: str
    done: Replayed
    known: dict[int, tuple[Stream, StreamSchema] | None] = field(default_factory=dict)

    def append_all(self, letters: Sequence[DeadLetter]) -> None:
        """Append dead letters and remove those that were appended."""
        appended: list[str] = []
        try:
            for letter in letters:
                why = self._append(letter)
                if not why:
                    appended.append(letter.id)
                    continue
                self.done.left += 1
                if len(self.done.faults) < _SHOWN:
                    self.done.faults[letter.id] = why
        finally:
            # Also if the log takes no more.
            slug = self.cluster.slug
            self.done.appended += dead_letters.remove(redis_client(), slug, appended)

    def _append(self, letter: DeadLetter) -> str:
        """Append a dead letter; return the reason if it is rejected, else ""."""
        if letter.stream not in self.known:
            self.known[letter.stream] = self._schema_of(letter.stream)
        known = self.known[letter.stream]
        if known is None:
            return "its stream is gone, or has no schema"
        stream, schema = known
        try:
            conformed = conform_letter(letter, schema, stream.retired, self.zone)
        except BadBody as error:
            return f"it cannot be read: {error}"
        except Invalid as invalid:
            return reason_of(invalid.fields)
        if refusal := _refusal(conformed, schema):
            return refusal
        token = IdempotencyToken(f"dead-letter:{letter.id}", 0)
        try:
            append.append(self.actor, stream, conformed.batch, token)
        except Conflict as conflict:
            # It was appended before, under another schema.
            return "" if conflict.code == "stamp_reused" else str(conflict)
        return ""

    def _schema_of(self, pk: int) -> tuple[Stream, StreamSchema] | None:
        """Return a stream and its schema, None if there is no such stream or it has no schema."""
        rows = Stream.objects.filter(cluster=self.cluster, pk=pk).select_related("cluster")
        stream = rows.first()
        schema = None if stream is None else schema_of(stream.schema)
        return None if stream is None or schema is None else (stream, schema)


def _refusal(conformed: Conformed, schema: StreamSchema) -> str:
    if conformed.faults:
        return reason_of(next(iter(conformed.faults.values())))
    if _is_ahead(conformed.batch, schema):
        return f"it is dated more than {schema.max_future_s:g} s ahead of now"
    return ""


def _is_ahead(batch: Any, schema: StreamSchema) -> bool:
    if not schema.event_time:
        return False
    newest = int(times_ms(batch.column(schema.event_time)).max())
    return newest > time.time() * 1000 + schema.max_future_s * 1000
