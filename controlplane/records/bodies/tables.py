"""Records as Arrow tables: Arrow IPC streams, Parquet files, and CSV read as text."""

import io
from collections.abc import Iterable
from typing import Any, Final

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from controlplane.errors import BadBody, Fields, Invalid
from controlplane.records.bodies.conformance import (
    MISSING,
    Conformed,
    check_count,
    conform_columns,
    convert_columns,
    unknown_columns,
)
from controlplane.records.bodies.json_values import convert_column
from controlplane.wire.records.casts import Rules
from controlplane.wire.records.conversion import Converted, python_value
from controlplane.wire.records.numbers import pc
from controlplane.wire.records.record_codec import MAX_RECORDS
from controlplane.wire.schema import StreamSchema

# What a compressed body may grow to in memory.
MAX_EXPANDED: Final = 256 * 1024 * 1024
_BATCH: Final = 1024
# A row of CSV must fit into a block.
_BLOCK: Final = 4 * 1024 * 1024
DEFAULT_RULES: Final = Rules()
_UNREADABLE: Final = (pa.ArrowException, OSError, ValueError, KeyError)


def of_csv(body: bytes, schema: StreamSchema, zone: str) -> Conformed:
    """Return the records of CSV with a header line; an empty cell without quotes is null.

    A line with another number of cells is a fault of its record. Raises `BadBody` and `Invalid`.
    """
    names = csv_header(body)
    skipped: dict[int, str] = {}
    table = read_csv(body, names, skipped)
    count = table.num_rows + len(skipped)
    check_count(count)
    places = [position for position in range(count) if position not in skipped]
    back = {position: index for index, position in enumerate(places)}
    faults: dict[int, Fields] = {
        position: {"": [f"Has another number of cells than the header ({len(names)})"]}
        for position in skipped
    }
    result = of_table(table, schema, Rules(textual=True, zone=zone))
    faults |= {places[index]: fields for index, fields in result.faults.items()}

    def record_at(position: int) -> Any:
        return skipped[position] if position in skipped else result.record_at(back[position])

    return Conformed(result.batch, faults, count, record_at)


def of_table(table: Any, schema: StreamSchema, rules: Rules = DEFAULT_RULES) -> Conformed:
    """Return the records of an Arrow table. Raises `Invalid` for columns that do not fit at all."""
    names = table.schema.names
    wrong = unknown_columns(names, schema)
    doubled = {name for name in names if names.count(name) > 1}
    wrong |= {name: ["Is there twice"] for name in doubled}
    needed = [spec.name for spec in schema.columns if not spec.nullable]
    wrong |= {name: [MISSING] for name in needed if name not in names}
    if wrong:
        raise Invalid(wrong)

    def column(field: Any) -> Converted:
        if field.name in names:
            return _column(table, field, rules)
        return Converted(pa.nulls(table.num_rows, field.type), {})

    def record_at(index: int) -> Any:
        return {name: python_value(table.column(name)[index]) for name in names}

    columns = convert_columns(schema, column)
    return conform_columns(schema, columns, {}, table.num_rows, record_at)


def _column(table: Any, field: Any, rules: Rules) -> Converted:
    array = table.column(field.name).combine_chunks()
    if isinstance(array, pa.ChunkedArray):
        # Arrow keeps chunks where one array would be too large, or where there is none.
        array = pa.concat_arrays(array.chunks) if array.chunks else pa.nulls(0, array.type)
    if pa.types.is_dictionary(array.type):
        _check_size(_decoded_size(array))
        array = array.dictionary_decode()
    return convert_column(array, field.type, rules)


def _decoded_size(array: Any) -> int:
    """Return how many bytes the values of a dictionary-encoded array take when written out."""
    try:
        sizes = pc.binary_length(array.dictionary)
    except pa.ArrowNotImplementedError:
        return int(array.dictionary.nbytes * len(array) // max(len(array.dictionary), 1))
    return int(pc.sum(sizes.take(array.indices)).as_py() or 0)


def read_arrow(body: bytes) -> Any:
    """Return the table of an Arrow IPC stream. Raises `BadBody`, and `Invalid` for its size."""
    try:
        with pa.ipc.open_stream(body) as reader:
            return _collected(reader, reader.schema)
    except _UNREADABLE as error:
        raise BadBody(f"The body is no Arrow IPC stream: {error}") from error


def read_parquet(body: bytes) -> Any:
    """Return the table of a Parquet file. Raises `BadBody`, and `Invalid` for its size."""
    try:
        with pq.ParquetFile(pa.BufferReader(body)) as file:
            check_count(max(min(file.metadata.num_rows, MAX_RECORDS + 1), 1))
            batches = file.iter_batches(batch_size=_BATCH, use_threads=False)
            return _collected(batches, file.schema_arrow)
    except _UNREADABLE as error:
        raise BadBody(f"The body is no Parquet file: {error}") from error


def _collected(batches: Iterable[Any], schema: Any) -> Any:
    """Return a table of batches, checked one by one, before the next is read."""
    kept, rows, size = [], 0, 0
    for batch in batches:
        batch.validate(full=True)
        kept.append(batch)
        rows, size = rows + batch.num_rows, size + batch.nbytes
        _check_size(size)
        if rows > MAX_RECORDS:
            check_count(rows)
    table = pa.Table.from_batches(kept, schema)
    check_count(table.num_rows)
    return table


def _check_size(size: int) -> None:
    if size > MAX_EXPANDED:
        most = MAX_EXPANDED // 2**20
        raise Invalid({"records": [f"Take more than {most} MiB when unpacked: send less at once"]})


def csv_header(body: bytes) -> list[str]:
    """Return the names of the columns of CSV. Raises `BadBody`."""
    try:
        with pa_csv.open_csv(io.BytesIO(body), _reading(), _parsing(lambda _: "skip")) as reader:
            return list(reader.schema.names)
    except _UNREADABLE as error:
        raise BadBody(f"The body is no CSV: {error}") from error


def _reading() -> Any:
    # Rows are numbered for the handler of invalid ones only in one thread.
    return pa_csv.ReadOptions(use_threads=False, block_size=_BLOCK)


def _parsing(handler: Any) -> Any:
    return pa_csv.ParseOptions(invalid_row_handler=handler, newlines_in_values=True)


def read_csv(body: bytes, names: list[str], skipped: dict[int, str]) -> Any:
    """Return CSV as text columns; bad lines go to `skipped` by record. Raises `BadBody`."""

    def skip(row: Any) -> str:
        # Rows are numbered from 1, and the header is one of them.
        skipped[row.number - 2] = row.text
        return "skip"

    try:
        return pa_csv.read_csv(
            io.BytesIO(body),
            _reading(),
            _parsing(skip),
            pa_csv.ConvertOptions(
                column_types=dict.fromkeys(names, pa.string()), null_values=[""],
                strings_can_be_null=True, quoted_strings_can_be_null=False,
            ),
        )  # fmt: skip
    except _UNREADABLE as error:
        raise BadBody(f"The body is no CSV: {error}") from error
