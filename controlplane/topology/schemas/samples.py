"""Samples of records as Arrow tables, read by Arrow's own readers and bounded in size."""

import io
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.json as pa_json
import pyarrow.parquet as pq

from controlplane.errors import BadBody, Invalid
from controlplane.records.bodies import Format
from controlplane.records.bodies.csv_text import check_csv
from controlplane.records.bodies.rows import PLAIN, read_lines, read_rows, read_value
from controlplane.records.bodies.tables import read_arrow, read_parquet, unreadable
from controlplane.records.decoding import decode

MAX_BYTES: Final = 4 * 1024 * 1024
MAX_ROWS: Final = 10_000
_BATCH: Final = 1024
_UNREADABLE: Final = (pa.ArrowException, OSError, ValueError, KeyError, RecursionError)


def read_sample(sample: bytes, kind: Format) -> tuple[Any, Mapping[str, Any]]:
    """Return the first rows of a sample, and the columns with types that no stream has by name.

    Text that may be a time stays text. Raises `Invalid` (field `sample`) for a sample that is too
    large, empty, or not of its format.
    """
    if len(sample) > MAX_BYTES:
        most = MAX_BYTES // 2**20
        raise Invalid({"sample": [f"A sample has at most {most} MiB, not {len(sample):,} bytes"]})
    skipped: dict[str, Any] = {}
    try:
        table = _READERS[kind](sample, skipped)
    except MemoryError:
        raise
    except (BadBody, *_UNREADABLE) as error:
        raise Invalid({"sample": [f"Is not {kind.value}: {error}"]}) from error
    if not table.num_rows and not skipped:
        raise Invalid({"sample": ["Holds no record"]})
    return table.slice(0, MAX_ROWS), skipped


def sample_of_file(path: Path, kind: Format) -> tuple[bytes, Format]:
    """Return the beginning of a file as a sample; of Parquet its first rows, as Arrow.

    Raises `Invalid` for a JSON list that is too large: its beginning is not JSON.
    """
    if kind is Format.PARQUET and path.stat().st_size > MAX_BYTES:
        return bytes(decode(head_of_parquet, path, MAX_BYTES, MAX_ROWS)[1]), Format.ARROW
    with path.open("rb") as opened:
        return head_of(opened.read(MAX_BYTES + 1), kind), kind


def head_of_parquet(path: Path, most_bytes: int, most_rows: int) -> tuple[None, bytes]:
    """Return the first rows of a Parquet file as an Arrow stream. Raises `Invalid`."""
    try:
        with pq.ParquetFile(path) as file:
            return None, _as_arrow(file, most_bytes, most_rows)
    except _UNREADABLE as error:
        raise Invalid({"sample": [f"Is not {Format.PARQUET.value}: {error}"]}) from error


def head_of(body: bytes, kind: Format) -> bytes:
    """Return a body, of text by lines that is too large its first lines."""
    if len(body) <= MAX_BYTES or kind not in (Format.CSV, Format.NDJSON):
        return body
    # The last line is whole; a cell with a line break may be cut, which Arrow reports.
    return body[: body.rfind(b"\n", 0, MAX_BYTES) + 1]


def _as_arrow(file: Any, most_bytes: int, most_rows: int) -> bytes:
    batches = file.iter_batches(batch_size=_BATCH, use_threads=False)
    table = _head(batches, file.schema_arrow, most_rows)
    rows = table.num_rows
    while table.nbytes > most_bytes // 2 and rows > 1:
        rows //= 2
        table = table.slice(0, rows)
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        # A slice alone would be written with all of its dictionaries, but with its rows only.
        writer.write_table(table)
    return sink.getvalue()


def _head(batches: Iterable[Any], schema: Any, most_rows: int) -> Any:
    kept, rows = [], 0
    for batch in batches:
        kept.append(batch)
        rows += batch.num_rows
        if rows >= most_rows:
            break
    return pa.Table.from_batches(kept, schema)


def _readable(schema: Any, skipped: dict[str, Any]) -> list[int]:
    """Return the columns that Weir can read, and add the others to `skipped`."""
    skipped |= {field.name: field.type for field in schema if unreadable(field.type)}
    return [index for index, field in enumerate(schema) if not unreadable(field.type)]


def _of_arrow(sample: bytes, skipped: dict[str, Any]) -> Any:
    return read_arrow(sample, lambda schema: _readable(schema, skipped), MAX_ROWS)


def _of_parquet(sample: bytes, skipped: dict[str, Any]) -> Any:
    return read_parquet(sample, lambda schema: _readable(schema, skipped), MAX_ROWS)


def _of_json(sample: bytes, _skipped: dict[str, Any]) -> Any:
    return _of_rows(
        json.dumps(row, ensure_ascii=False) for row in read_rows(sample, PLAIN)[:MAX_ROWS]
    )


def _of_lines(sample: bytes, _skipped: dict[str, Any]) -> Any:
    lines = read_lines(sample)[:MAX_ROWS]
    for number, line in enumerate(lines, 1):
        try:
            read_value(line, PLAIN)
        except (ValueError, RecursionError) as error:
            raise ValueError(f"record {number}: {error}") from error
    return _of_rows(lines)


def _of_rows(lines: Iterable[str]) -> Any:
    # One block: a column has one type over the whole sample.
    body = "\n".join(lines).encode("utf-8", "surrogatepass")
    options = pa_json.ReadOptions(use_threads=False, block_size=max(len(body) + 1, 1))
    table = pa_json.read_json(io.BytesIO(body), options)
    texts = _texts(table.schema)
    if not texts:
        return table
    # Arrow reads what looks like a time as one, without its zone and fraction.
    schema = pa.schema([(name, pa.string()) for name in texts])
    parsing = pa_json.ParseOptions(explicit_schema=schema)
    read = pa_json.read_json(io.BytesIO(body), options, parsing)
    return read.select(table.schema.names)


def _of_csv(sample: bytes, _skipped: dict[str, Any]) -> Any:
    check_csv(sample)

    def read(texts: Sequence[str]) -> Any:
        return pa_csv.read_csv(
            io.BytesIO(sample),
            pa_csv.ReadOptions(use_threads=False, block_size=MAX_BYTES + 1),
            pa_csv.ParseOptions(newlines_in_values=True),
            pa_csv.ConvertOptions(
                column_types=dict.fromkeys(texts, pa.string()), null_values=[""],
                true_values=["true"], false_values=["false"], strings_can_be_null=True,
                quoted_strings_can_be_null=False,
            ),
        )  # fmt: skip

    table = read(())
    texts = _texts(table.schema)
    return read(texts) if texts else table


def _texts(schema: Any) -> list[str]:
    """Return the columns that Arrow read as times or bytes, which text in a file never is."""
    tests = (pa.types.is_temporal, pa.types.is_binary)
    return [field.name for field in schema if any(test(field.type) for test in tests)]


_READERS: Final = {
    Format.JSON: _of_json,
    Format.NDJSON: _of_lines,
    Format.CSV: _of_csv,
    Format.ARROW: _of_arrow,
    Format.PARQUET: _of_parquet,
}
