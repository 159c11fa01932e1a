"""Requests with records: valid records are appended, others rejected or stored as dead letters."""

from dataclasses import replace
from enum import StrEnum

from redis.exceptions import RedisError

from controlplane.access.roles import Actor, require_operator
from controlplane.errors import Away
from controlplane.models import Stream
from controlplane.records import append, dead_letters
from controlplane.records.append import AWAY_S, Appended
from controlplane.records.bodies import Format, conform
from controlplane.wire.log.values import IdempotencyToken


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
) -> Appended:
    """Append the records of a body to a stream.

    With `on_bad=reject` all of them or none; with `dead_letter` the valid ones, and the others
    become dead letters. A repetition under the same token has no effect. Raises `BadBody`, and as
    `records.append` does.
    """
    require_operator(actor, stream.cluster)
    conformed = conform(body, kind, append.schema_of_stream(stream), zone)
    if on_bad is OnBad.REJECT:
        conformed.require_all()
    dead_letters.check_fault_count(conformed)
    appended = Appended("", 0)
    if conformed.batch.num_rows:
        appended = append.append(actor, stream, conformed.batch, token)
    try:
        dead_letters.store_faulty(stream, conformed, token)
    except RedisError as error:
        text = f"The dead letters were not kept: {error}. Send the request again, with its sequence"
        raise Away("dead_letters_away", text, AWAY_S) from error
    return replace(appended, dead_letters=len(conformed.faults))
