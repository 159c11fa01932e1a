"""Records as Arrow tables: Arrow IPC streams, Parquet files, and CSV read as text."""

import io
import struct
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import Any, Final

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from controlplane.errors import BadBody, Fields, Invalid
from controlplane.records.bodies.arrow_messages import declared_sizes
from controlplane.records.bodies.conformance import (
    MAX_SHOWN,
    MISSING,
    TWICE,
    Conformed,
    Warned,
    check_count,
    conform_columns,
    convert_columns,
    early_numbers,
    unknown_columns,
)
from controlplane.records.bodies.csv_text import check_csv
from controlplane.records.bodies.json_values import convert_column
from controlplane.wire.records.casts import CastRules
from controlplane.wire.records.conversion import Converted, python_value
from controlplane.wire.records.numbers import is_number, is_text, pc
from controlplane.wire.records.record_codec import MAX_RECORDS
from controlplane.wire.schema import StreamSchema

# What a body may unpack to in memory: 670 bytes of each of the most records.
MAX_EXPANDED: Final = 64 * 1024 * 1024
# Each batch of a Parquet file has the dictionaries of its columns.
_BATCH: Final = 16 * 1024
# A row of CSV must fit into a block.
_BLOCK: Final = 4 * 1024 * 1024
DEFAULT_RULES: Final = CastRules()
_NO_COLUMN: Final = (
    pa.types.is_nested, pa.types.is_run_end_encoded, pa.types.is_duration, pa.types.is_interval,
    pa.types.is_time,
)  # fmt: skip
_VIEWS: Final = (
    (pa.types.is_string_view, pa.large_string()), (pa.types.is_binary_view, pa.large_binary()),
)  # fmt: skip
# Bytes of a value by Parquet's physical type; a text is read as its place in a dictionary.
_TEXT: Final = "BYTE_ARRAY"
_NAME: Final = 60
_LISTS: Final = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)
_WIDTHS: Final = {
    "BOOLEAN": 1, "INT32": 4, "INT64": 8, "INT96": 12, "FLOAT": 4, "DOUBLE": 8, _TEXT: 4,
}  # fmt: skip
_UNREADABLE: Final = (pa.ArrowException, OSError, ValueError, KeyError, IndexError, struct.error)
# Returns the columns to read of a schema by their index, or raises `Invalid`.
Choose = Callable[[Any], Sequence[int]]


def of_csv(body: bytes, schema: StreamSchema, zone: str) -> Conformed:
    """Return the records of CSV with a header line; an empty cell without quotes is null.

    A line with another number of cells is a fault of its record. Raises `BadBody` and `Invalid`.
    """
    check_csv(body)
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
    result = of_table(table, schema, CastRules(textual=True, zone=zone))
    faults |= {places[index]: fields for index, fields in result.faults.items()}

    def record_at(position: int) -> Any:
        return skipped[position] if position in skipped else result.record_at(back[position])

    return Conformed(result.batch, faults, count, record_at, result.warnings)


def of_arrow(body: bytes, schema: StreamSchema, zone: str) -> Conformed:
    """Return the records of an Arrow IPC stream. Raises `BadBody` and `Invalid`."""
    table = read_arrow(body, lambda given: _fitting(given, schema))
    return of_table(table, schema, CastRules(zone=zone))


def of_parquet(body: bytes, schema: StreamSchema, zone: str) -> Conformed:
    """Return the records of a Parquet file. Raises `BadBody` and `Invalid`."""
    table = read_parquet(body, lambda given: _fitting(given, schema))
    return of_table(table, schema, CastRules(zone=zone))


def _fitting(given: Any, schema: StreamSchema) -> Sequence[int]:
    """Return all columns. Raises `Invalid` for columns that do not fit a stream at all."""
    names = Counter(given.names)
    wrong = unknown_columns(names, schema)
    wrong |= {name: [TWICE] for name, count in names.items() if count > 1}
    needed = [spec.name for spec in schema.columns if not spec.nullable]
    wrong |= {name: [MISSING] for name in needed if name not in names}
    faults = ((field.name, unreadable(field.type)) for field in given)
    wrong |= {name: [why] for name, why in faults if why and name not in wrong}
    if wrong:
        raise Invalid(dict(islice(wrong.items(), MAX_SHOWN)))
    return range(len(given))


def unreadable(arrow: Any) -> str:
    """Return why no column takes values of an Arrow type, whatever they are; "" if one may."""
    parts: list[Any] = []
    if pa.types.is_dictionary(arrow):
        parts = [arrow.value_type]
    elif pa.types.is_struct(arrow):
        name, count = next(iter(Counter(field.name for field in arrow).most_common(1)), ("", 0))
        if count > 1:
            return f"Names the field {name} twice"
        parts = [field.type for field in arrow]
    elif any(test(arrow) for test in _LISTS):
        parts = [arrow.value_type]
    elif isinstance(arrow, pa.BaseExtensionType) or any(test(arrow) for test in _NO_COLUMN):
        return f"Has the type {str(arrow)[:_NAME]}, which no column takes"
    return next((why for part in parts if (why := unreadable(part))), "")


def of_table(table: Any, schema: StreamSchema, rules: CastRules = DEFAULT_RULES) -> Conformed:
    """Return the records of an Arrow table. Raises `Invalid` for columns that do not fit at all."""
    _fitting(table.schema, schema)
    warnings: list[Warned] = []

    def column(field: Any) -> Converted:
        if field.name not in table.schema.names:
            return Converted(pa.nulls(table.num_rows, field.type), {})
        array = flat(table.column(field.name))
        try:
            converted = convert_column(array, field.type, rules)
        except (OverflowError, KeyError) as error:
            # Such as times beyond all years, and of unknown zones.
            raise Invalid({field.name: [f"Has values that no column takes: {error}"]}) from error
        if is_number(array.type) or (rules.textual and is_text(array.type)):
            early = early_numbers(field, converted.array, lambda place: array[place].as_py())
            warnings.extend(early)
        return converted

    def record_at(index: int) -> Any:
        return {name: python_value(table.column(name)[index]) for name in table.schema.names}

    columns = convert_columns(schema, column)
    return conform_columns(schema, columns, {}, table.num_rows, record_at, warnings)


def flat(column: Any) -> Any:
    """Return a column of a table as one array without dictionary or views. Raises `Invalid`."""
    array = column.combine_chunks()
    if isinstance(array, pa.ChunkedArray):
        # Arrow keeps chunks where one array would be too large, or where there is none.
        array = pa.concat_arrays(array.chunks) if array.chunks else pa.nulls(0, array.type)
    if pa.types.is_dictionary(array.type):
        check_size(_decoded_size(array.dictionary, array.indices))
        array = array.dictionary_decode()
    for is_view, plain in _VIEWS:
        if is_view(array.type):
            # Many views may share a text.
            array = array.cast(plain)
            check_size(array.nbytes)
    return array


def _decoded_size(dictionary: Any, indices: Any) -> int:
    """Return how many bytes the values of a dictionary-encoded array take when written out."""
    try:
        sizes = pc.binary_length(dictionary)
    except pa.ArrowNotImplementedError:
        return int(dictionary.nbytes * len(indices) // max(len(dictionary), 1))
    return int(pc.sum(sizes.take(indices)).as_py() or 0)


def read_arrow(body: bytes, choose: Choose, most: int = 0) -> Any:
    """Return the chosen columns of an Arrow IPC stream, of its first `most` records if not 0.

    Raises `BadBody`, and `Invalid` for its size.
    """
    if body.startswith(b"ARROW1"):
        text = "The body is an Arrow file, not a stream: write it with pyarrow.ipc.new_stream"
        raise BadBody(text)
    try:
        records, size = declared_sizes(body)
        if not most:
            check_count(records)
        check_size(size)
        with pa.ipc.open_stream(body) as reader:
            chosen = list(choose(reader.schema))
            if len(chosen) == len(reader.schema):
                return _collected(reader, reader.schema, most)
        if not chosen:
            return pa.table({})
        options = pa.ipc.IpcReadOptions(included_fields=chosen)
        with pa.ipc.open_stream(body, options=options) as reader:
            return _collected(reader, reader.schema, most)
    except MemoryError:
        raise
    except _UNREADABLE as error:
        raise BadBody(f"The body is not an Arrow IPC stream: {error}") from error


def read_parquet(body: bytes, choose: Choose, most: int = 0) -> Any:
    """Return the chosen columns of a Parquet file, of its first `most` records if not 0.

    Raises `BadBody`, and `Invalid` for its size.
    """
    try:
        with pq.ParquetFile(pa.BufferReader(body)) as file:
            if not most:
                check_count(file.metadata.num_rows)
            check_size(_parquet_size(file.metadata, most or MAX_RECORDS))
            names = file.schema_arrow.names
            chosen = [names[index] for index in choose(file.schema_arrow)]
            texts = _dictionaries(file.metadata)
        if len(set(names)) < len(names):
            raise BadBody("The body is a Parquet file that names a column twice")
        # As dictionaries, of which few bytes in the file may be many in memory.
        with pq.ParquetFile(pa.BufferReader(body), read_dictionary=texts) as file:
            batches = file.iter_batches(batch_size=_BATCH, columns=chosen, use_threads=False)
            schema = pa.schema([file.schema_arrow.field(name) for name in chosen])
            return _collected(batches, schema, most)
    except MemoryError:
        raise
    except _UNREADABLE as error:
        raise BadBody(f"The body is not a Parquet file: {error}") from error


def _dictionaries(metadata: Any) -> list[str]:
    """Return the columns of text that Arrow can read as dictionaries: flat, of no delta pages."""
    groups = [metadata.row_group(index) for index in range(metadata.num_row_groups)]
    leaves = enumerate(map(metadata.schema.column, range(metadata.num_columns)))
    return [
        leaf.path for index, leaf in leaves
        if leaf.physical_type == _TEXT and leaf.path == leaf.name and not leaf.max_repetition_level
        and not any("DELTA" in str(group.column(index).encodings) for group in groups)
    ]  # fmt: skip


def _parquet_size(metadata: Any, most: int) -> int:
    """Return the bytes that the first `most` records of a Parquet file unpack to, as declared."""
    size = 0.0
    for group in map(metadata.row_group, range(metadata.num_row_groups)):
        share = min(1.0, max(most, 0) / max(group.num_rows, 1))
        for index in range(group.num_columns):
            chunk, leaf = group.column(index), metadata.schema.column(index)
            width = max(_WIDTHS.get(chunk.physical_type, leaf.length), 1)
            size += share * max(chunk.total_uncompressed_size, chunk.num_values * width)
        most -= group.num_rows
    return int(size)


def _collected(batches: Iterable[Any], schema: Any, most: int) -> Any:
    """Return a table of batches, checked one by one, before the next is read."""
    kept, rows, size = [], 0, 0
    for batch in batches:
        rows += batch.num_rows
        if not most and rows > MAX_RECORDS:
            check_count(rows)
        batch.validate(full=True)
        size += sum(map(_size_of, batch.columns))
        check_size(size)
        kept.append(batch)
        if 0 < most <= rows:
            break
    table = pa.Table.from_batches(kept, schema)
    if not most:
        check_count(table.num_rows)
    return table.slice(0, most or None)


def _size_of(array: Any) -> int:
    """Return the bytes of an array when written out: batches of Parquet repeat a dictionary."""
    if pa.types.is_dictionary(array.type):
        return int(array.indices.nbytes + _decoded_size(array.dictionary, array.indices))
    return int(array.nbytes)


def check_size(size: int) -> None:
    """Raise `Invalid` if records take more bytes than a body may unpack to."""
    if size > MAX_EXPANDED:
        most = MAX_EXPANDED // 2**20
        raise Invalid({"records": [f"Take more than {most} MiB when unpacked: send less at once"]})


def csv_header(body: bytes) -> list[str]:
    """Return the names of the columns of CSV. Raises `BadBody`."""
    try:
        with pa_csv.open_csv(io.BytesIO(body), _reading(), _parsing(lambda _: "skip")) as reader:
            return list(reader.schema.names)
    except _UNREADABLE as error:
        raise BadBody(f"The body is not CSV: {error}") from error


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
        raise BadBody(f"The body is not CSV: {error}") from error
