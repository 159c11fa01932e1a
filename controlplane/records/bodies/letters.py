"""Dead letters as records of a stream's schema."""

from collections.abc import Collection

import pyarrow as pa

from controlplane.errors import BadBody
from controlplane.records.bodies.conformance import Conformed
from controlplane.records.bodies.rows import of_rows, read_value
from controlplane.records.bodies.tables import of_table
from controlplane.wire.dead_letters import DeadLetter, Reason
from controlplane.wire.errors import InvalidBlock
from controlplane.wire.records.record_codec import decode_block
from controlplane.wire.schema import StreamSchema


def of_letter(
    letter: DeadLetter, schema: StreamSchema, retired: Collection[str], zone: str
) -> Conformed:
    """Return a dead letter under a schema, without the columns that were removed since.

    Raises `BadBody` and `Invalid`.
    """
    if not letter.data:
        raise BadBody("it was too large to be kept")
    try:
        if letter.reason.is_text:
            row = read_value(letter.data.decode("utf-8", "surrogatepass"))
            if isinstance(row, dict):
                # A topic may have more fields than its stream, as when it was read.
                has_more = letter.reason is Reason.MESSAGE
                known = schema.arrow.names if has_more else row.keys() - set(retired)
                row = {name: value for name, value in row.items() if name in known}
            # A record that came as CSV has its numbers as text.
            return of_rows([row], schema, zone, textual=True)
        table = pa.Table.from_batches([decode_block(letter.data).records])
    except (InvalidBlock, ValueError, RecursionError) as error:
        raise BadBody(str(error)) from error
    return of_table(table.select([name for name in table.schema.names if name not in retired]),
                    schema)  # fmt: skip
