"""Requests with records: valid records are appended, others rejected or stored as dead letters."""

from dataclasses import replace
from enum import StrEnum

from redis.exceptions import RedisError

from controlplane.access.idempotency import running_fingerprint
from controlplane.access.roles import Actor, require_operator
from controlplane.errors import Away, Conflict
from controlplane.models import Stream
from controlplane.records import append, dead_letters
from controlplane.records.append import AWAY_S, AppendResult
from controlplane.records.bodies import Format
from controlplane.records.decoding import conform
from controlplane.wire.log.values import IdempotencyToken
from controlplane.wire.sources.kinds import source_from_json


class OnBad(StrEnum):
    """The handling of records that do not conform to the stream's schema."""

    REJECT = "reject"
    DEAD_LETTER = "dead_letter"


def append_body(
    actor: Actor,
    stream: Stream,
    body: bytes,
    kind: Format,
    token: IdempotencyToken | None = None,
    on_bad: OnBad = OnBad.REJECT,
    zone: str = "",
) -> AppendResult:
    """Append the records of a body to a stream.

    With `on_bad=reject` all of them or none; with `dead_letter` the valid ones, and the others
    become dead letters. A repetition under the same token has no effect; the token of a request
    with an idempotency key is its fingerprint. Raises as `decoding.conform` and `append.append`,
    and `Conflict` (is_topic) if the stream has a source.
    """
    require_operator(actor, stream.cluster)
    if stream.source:
        place = source_from_json(stream.source).place
        text = f"The records of {stream.name} are read from the {place}: nobody appends to it here"
        raise Conflict("is_topic", text)
    if token is None and (producer := running_fingerprint()):
        token = IdempotencyToken(producer, 0)
    most_faults = 0 if on_bad is OnBad.REJECT else dead_letters.MAX_BAD
    conformed = conform(body, kind, append.schema_of_stream(stream), zone, most_faults)
    appended = AppendResult("", 0)
    if conformed.batch.num_rows:
        appended = append.append(actor, stream, conformed.batch, token)
    try:
        dead_letters.store_faulty(stream, conformed, token)
    except RedisError as error:
        text = f"The dead letters were not kept: {error}. Send the request again, with its sequence"
        raise Away("dead_letters_away", text, AWAY_S) from error
    faulty, warnings = len(conformed.faults), tuple(conformed.warnings)
    return replace(appended, dead_letters=faulty, warnings=warnings)
