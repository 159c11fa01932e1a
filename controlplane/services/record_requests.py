"""One request with records: what fits is appended, what does not is refused or kept aside."""

from enum import StrEnum

from redis.exceptions import RedisError

from controlplane.errors import Away
from controlplane.models import Stream
from controlplane.services import dead_letters, records
from controlplane.services.access import Actor, require_operator
from controlplane.services.record_bodies import Format, conform
from controlplane.services.records import AWAY_S, Appended
from controlplane.wire.log import IdempotencyToken


class OnBad(StrEnum):
    """What becomes of a request with records that do not fit the stream's schema."""

    REJECT = "reject"
    DEAD_LETTER = "dead_letter"


def append_body(
    actor: Actor,
    stream: Stream,
    body: bytes,
    kind: Format,
    stamp: IdempotencyToken | None = None,
    on_bad: OnBad = OnBad.REJECT,
    zone: str = "",
) -> Appended:
    """Append the records of a body to a stream.

    With `on_bad=reject` all of them or none; with `dead_letter` those that fit, and the others
    become dead letters. Repeated under the same stamp, both happen once. Raises `BadBody`, and as
    `records.append` does.
    """
    require_operator(actor, stream.cluster)
    found = conform(body, kind, records.schema_of_stream(stream), zone)
    if on_bad is OnBad.REJECT:
        found.require_all()
    dead_letters.require_few(found)
    position = ""
    if found.batch.num_rows:
        position = records.append(actor, stream, found.batch, stamp).position
    try:
        dead_letters.keep_faulty(stream, found, stamp)
    except RedisError as error:
        told = f"The dead letters were not kept: {error}. Send the request again, with its stamp"
        raise Away("dead_letters_away", told, AWAY_S) from error
    return Appended(position, found.batch.num_rows, len(found.faults))
