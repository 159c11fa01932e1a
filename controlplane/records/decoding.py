"""The only way of foreign bytes into Weir: they are decoded in confined children.

Libraries in native code unpack and convert what others have written. A body that ends such a
library, or takes more memory or time than the limits, ends a child and is refused.
"""

import json
import logging
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import lru_cache
from pickle import PickleBuffer
from typing import Any, Final

import pyarrow as pa

from controlplane.child_processes.errors import (
    ChildDied,
    ChildFailed,
    Exhausted,
    NoChild,
    OutOfTime,
)
from controlplane.child_processes.pool import ChildPool, Parts
from controlplane.errors import Away, BadBody, Invalid, Undecodable
from controlplane.processes.isolation.limits import DECODERS, decoding_limits
from controlplane.records import bodies
from controlplane.records.bodies import Format
from controlplane.records.bodies.conformance import Conformed, Warned
from controlplane.records.bodies.letters import of_letter
from controlplane.records.bodies.tables import check_size
from controlplane.wire.dead_letters import DeadLetter
from controlplane.wire.schema import StreamSchema

logger = logging.getLogger(__name__)

# What a reader returns: a value of JSON, and bytes or a view of them.
Answer = tuple[Any, Any]
_BUSY_S: Final = 2
_HEAD: Final = struct.Struct("<I")
_ADVICE: Final = "Send fewer records at once"
_WARM_UP: Final = "controlplane.records.bodies.warm_up"
_pool: Final = ChildPool(decoding_limits(), DECODERS, [__name__, _WARM_UP])


def conform(
    body: bytes, kind: Format, schema: StreamSchema, zone: str = "", most_faults: int = 0
) -> Conformed:
    """Return the records of a body that conform to a schema, as `bodies.conform` does.

    `most_faults`: up to so many faulty records are returned beside them, with their text. Raises
    `BadBody`, `Invalid`, `Undecodable`, and `Away` if all children are busy.
    """
    answer = decode(_conform_body, body, kind, _text_of(schema), zone, most_faults)
    return _conformed(answer, schema)


def conform_letter(
    letter: DeadLetter, schema: StreamSchema, retired: Mapping[str, Any], zone: str
) -> Conformed:
    """Return a dead letter as a record of a schema; raises as `conform` does."""
    answer = decode(_conform_letter, letter, _text_of(schema), set(retired), zone)
    return _conformed(answer, schema)


def decode(read: Callable[..., Answer], *arguments: Any) -> Answer:
    """Return `read(*arguments)`, which a confined child computes.

    Raises `BadBody` and `Invalid` as `read` does, `Undecodable` if it fails otherwise, and `Away`.
    """
    try:
        large = [PickleBuffer(item) if isinstance(item, bytes) else item for item in arguments]
        answer = _pool.call(_answer, read, large)
    except NoChild as none:
        raise Away("decoders_busy", "Other bodies are being decoded", _BUSY_S) from none
    except Exhausted as error:
        unit = "s" if isinstance(error, OutOfTime) else "bytes"
        limit = f"{error.limit:,.0f} {unit}"
        text = f"To decode the body takes more than the limit of {limit}. {_ADVICE}"
        raise Undecodable(error.code, text, {"limit": error.limit, "unit": unit}) from error
    except ChildDied as error:
        text = f"The process that decoded the body was ended by it (signal {error.number})"
        advice = "It is damaged, or has a type that its reader cannot take: write it again, as JSON"
        raise Undecodable("decoder_died", f"{text}. {advice}") from error
    except ChildFailed as error:
        logger.error("A body was not decoded: %s", error)
        text = "The body has values or types that its reader cannot take: write it again, as JSON"
        raise Undecodable("not_decoded", text) from error
    head, begin = _HEAD.unpack_from(answer)[0], _HEAD.size
    value = json.loads(answer[begin : begin + head])
    match value:
        case {"bad": [text, code, data]}:
            raise BadBody(text, code, data)
        case {"invalid": [fields, rows]}:
            raise Invalid(fields, {int(row): faults for row, faults in rows.items()})
    return value["done"], memoryview(answer)[begin + head :]


@lru_cache(maxsize=1024)
def _text_of(schema: StreamSchema) -> str:
    return schema.to_text()


def _answer(read: Callable[..., Answer], arguments: Sequence[Any]) -> Parts:
    """Return the result of a reader, or its refusal, as bytes; runs in the child."""
    content, value = b"", {}
    try:
        value["done"], content = read(*arguments)
    except BadBody as bad:
        value = {"bad": [str(bad), bad.code, bad.data]}
    except Invalid as invalid:
        value = {"invalid": [invalid.fields, invalid.rows]}
    head = json.dumps(value).encode()
    return [_HEAD.pack(len(head)), head, content]


def _conform_body(body: bytes, kind: Format, schema: str, zone: str, most_faults: int) -> Answer:
    conformed = bodies.conform(body, kind, StreamSchema.from_text(schema), zone)
    if most_faults:
        conformed.require_few(most_faults)
    else:
        conformed.require_all()
    return _written(conformed)


def _conform_letter(letter: DeadLetter, schema: str, retired: set[str], zone: str) -> Answer:
    return _written(of_letter(letter, StreamSchema.from_text(schema), retired, zone))


def _written(conformed: Conformed) -> Answer:
    check_size(conformed.batch.nbytes)
    faulty = [(index, text, conformed.faults[index]) for index, _, text in conformed.faulty()]
    warnings = [asdict(warned) for warned in conformed.warnings]
    head = {"faulty": faulty, "count": conformed.count, "warnings": warnings}
    return head, memoryview(conformed.batch.serialize())


def _conformed(answer: Answer, schema: StreamSchema) -> Conformed:
    head, content = answer
    batch: Any = pa.ipc.read_record_batch(pa.py_buffer(content), schema.arrow)
    batch.validate(full=True)
    texts = {index: text for index, text, _ in head["faulty"]}
    faults = {index: fields for index, _, fields in head["faulty"]}
    warnings = [Warned(**warned) for warned in head["warnings"]]
    return Conformed(batch, faults, head["count"], texts.__getitem__, warnings)
