"""Samples of records as Arrow tables, read by Arrow's own readers and bounded in size."""

import io
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.json as pa_json
import pyarrow.parquet as pq

from algorithms.strict_json import check_bounds
from controlplane.errors import Invalid
from controlplane.records.bodies import Format

MAX_BYTES: Final = 4 * 1024 * 1024
MAX_ROWS: Final = 10_000
_BATCH: Final = 1024
_UNREADABLE: Final = (pa.ArrowException, OSError, ValueError, KeyError, RecursionError)


def read_sample(sample: bytes, kind: Format) -> Any:
    """Return the first rows of a sample; text that may be a time stays text.

    Raises `Invalid` (field `sample`) for a sample that is too large, empty, or not of its format.
    """
    if len(sample) > MAX_BYTES:
        most = MAX_BYTES // 2**20
        raise Invalid({"sample": [f"A sample has at most {most} MiB, not {len(sample):,} bytes"]})
    try:
        if kind in (Format.JSON, Format.NDJSON):
            # Arrow's reader of JSON ends the process on deep nesting.
            check_bounds(sample)
        table = _READERS[kind](sample)
    except _UNREADABLE as error:
        raise Invalid({"sample": [f"Is no {kind.value}: {error}"]}) from error
    if not table.num_rows or not table.num_columns:
        raise Invalid({"sample": ["Holds no record"]})
    return table.slice(0, MAX_ROWS)


def sample_of_file(path: Path, kind: Format) -> tuple[bytes, Format]:
    """Return the beginning of a file as a sample; of Parquet its first rows, as Arrow.

    Raises `Invalid` for a JSON list that is too large: its beginning is no JSON.
    """
    if kind is Format.PARQUET and path.stat().st_size > MAX_BYTES:
        try:
            with pq.ParquetFile(path) as file:
                return _as_arrow(file), Format.ARROW
        except _UNREADABLE as error:
            raise Invalid({"sample": [f"Is no {kind.value}: {error}"]}) from error
    with path.open("rb") as opened:
        return head_of(opened.read(MAX_BYTES + 1), kind), kind


def head_of(body: bytes, kind: Format) -> bytes:
    """Return a body, of text by lines that is too large its first lines."""
    if len(body) <= MAX_BYTES or kind not in (Format.CSV, Format.NDJSON):
        return body
    # The last line is whole; a cell with a line break may be cut, which Arrow reports.
    return body[: body.rfind(b"\n", 0, MAX_BYTES) + 1]


def _as_arrow(file: Any) -> bytes:
    table = _head(file.iter_batches(batch_size=_BATCH, use_threads=False), file.schema_arrow)
    rows = table.num_rows
    while table.nbytes > MAX_BYTES // 2 and rows > 1:
        rows //= 2
        table = table.slice(0, rows)
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        # A slice alone would be written with all of its dictionaries, but with its rows only.
        writer.write_table(table)
    return sink.getvalue()


def _head(batches: Iterable[Any], schema: Any) -> Any:
    kept, rows = [], 0
    for batch in batches:
        kept.append(batch)
        rows += batch.num_rows
        if rows >= MAX_ROWS:
            break
    return pa.Table.from_batches(kept, schema)


def _of_arrow(sample: bytes) -> Any:
    with pa.ipc.open_stream(sample) as reader:
        table = _head(reader, reader.schema)
    table.validate(full=True)
    return table


def _of_parquet(sample: bytes) -> Any:
    with pq.ParquetFile(pa.BufferReader(sample)) as file:
        return _head(file.iter_batches(batch_size=_BATCH, use_threads=False), file.schema_arrow)


def _of_json(sample: bytes) -> Any:
    value = json.loads(sample)
    rows = value.get("records") if isinstance(value, dict) else value
    if not isinstance(rows, list):
        raise ValueError("it must be a list of objects, or an object with a list `records`")
    lines = (json.dumps(row, ensure_ascii=False) for row in rows[:MAX_ROWS])
    return _of_lines("\n".join(lines).encode("utf-8", "surrogatepass"))


def _of_lines(sample: bytes) -> Any:
    lines = sample.removeprefix(b"\xef\xbb\xbf").splitlines()
    # One block: a column has one type over the whole sample.
    body = b"\n".join(line for line in lines if line.strip())
    for line in lines:
        # The bounds of the whole sample miss a deep line after one with closing brackets.
        check_bounds(line)
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


def _of_csv(sample: bytes) -> Any:
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
