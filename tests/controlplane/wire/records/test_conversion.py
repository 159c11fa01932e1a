"""What programs have becomes what a stream's schema asks for, or is refused with the place."""

from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from controlplane.wire.errors import BadBlock, InvalidBlock
from controlplane.wire.log.values import NO_TIME
from controlplane.wire.records.record_codec import (
    decode_block,
    encode_block,
    newest_event_ms,
    to_record_batch,
)
from controlplane.wire.schema import ColumnSpec, StreamSchema
from tests.support.schemas import READINGS

AT = datetime(2026, 3, 1, 12, 0, 0, 123456, tzinfo=UTC)
ROW: dict[str, Any] = {
    "at": AT, "station": "Żuków", "open": None, "level": float("inf"), "charge": 1.5,
    "price": Decimal("9999999999.99"), "built": date(1999, 12, 31), "serial": 2**64 - 1,
    "grade": -128, "place": {"lat": 1.5, "area": {"code": None}}, "tags": ["a", None],
    "raw": b"\xff",
}  # fmt: skip


def test_rows_of_every_type_come_back_from_a_block() -> None:
    """The block says itself what its columns are."""
    batch = to_record_batch(1, [ROW, {"at": AT, "station": ""}], READINGS)
    records, (schema, event_time) = decode_block(encode_block(batch, "at"))
    first, second = records.to_pylist()
    assert first == ROW
    assert set(second.values()) == {None, AT, ""}
    assert schema.equals(READINGS.arrow)
    assert event_time == "at"


@pytest.mark.parametrize(
    ("changed", "column", "record"),
    [
        ({"serial": -1}, "serial", 1), ({"grade": 128}, "grade", 1), ({"open": "yes"}, "open", 1),
        ({"price": Decimal("1.234")}, "price", 1), ({"station": 7}, "station", 1),
        ({"station": None}, "station", 1), ({"colour": "red"}, "colour", 1),
        ({"level": "high"}, "level", 1), ({"place": {"lat": "north"}}, "place", 1),
    ],
)  # fmt: skip
def test_a_value_that_does_not_fit_is_told_with_its_place(
    changed: dict[str, Any], column: str, record: int
) -> None:
    with pytest.raises(BadBlock, match=column) as refused:
        to_record_batch(7, [ROW, ROW | changed], READINGS)
    assert (refused.value.stream, refused.value.column) == (7, column)
    assert refused.value.record == record


def test_a_data_frame_has_its_columns_by_name_in_any_order() -> None:
    """NaN is null where a column cannot hold it, and NaN in a column of floats."""
    frame = pd.DataFrame(
        {
            "grade": [1.0, np.nan], "level": [0.5, np.nan], "station": ["a", "b"],
            "at": pd.to_datetime([AT, AT]),
        }
    )  # fmt: skip
    batch = to_record_batch(1, frame, READINGS)
    assert batch.column("grade").to_pylist() == [1, None]
    assert batch.column("level").null_count == 0
    assert np.isnan(batch.column("level")[1].as_py())
    assert batch.schema.equals(READINGS.arrow)
    with pytest.raises(BadBlock, match="column station: is missing"):
        to_record_batch(1, frame.drop(columns=["station"]), READINGS)


def test_arrow_is_taken_where_no_value_changes() -> None:
    """Wider types, dictionaries and other units; a table of several chunks."""
    part = pa.table(
        {
            "station": pa.array(["a", "b"]).dictionary_encode(),
            "at": pa.array([AT.replace(microsecond=0)] * 2, pa.timestamp("s", "UTC")),
            "grade": pa.array([3, None], pa.int64()),
        }
    )
    batch = to_record_batch(1, pa.concat_tables([part, part]), READINGS)
    assert batch.column("grade").to_pylist() == [3, None, 3, None]
    lossy = part.set_column(2, "grade", pa.array([300, 1]))
    with pytest.raises(BadBlock, match="column grade: is not int8"):
        to_record_batch(1, lossy, READINGS)


@pytest.mark.parametrize(
    ("kind", "value", "stored"),
    [
        ("decimal(12, 2)", "31.50", Decimal("31.50")), ("decimal(12, 2)", 0.1, Decimal("0.10")),
        ("decimal(12, 2)", np.float32(0.1), Decimal("0.10")), ("decimal(12, 2)", 0.125, None),
        ("decimal(12, 2)", float("nan"), None), ("decimal(12, 2)", Decimal("NaN"), None),
        ("decimal(12, 2)", Decimal("1e-999999999"), None), ("decimal(12, 2)", True, None),
        ("decimal(38, 9)", 2.0**60, Decimal(2**60)), ("int64", 2.0**60, 2**60),
        ("int64", 1e300, None), ("int64", True, None), ("int64", np.True_, None),
        ("int64", "7", None), ("int64", np.uint64(2**64 - 1), None), ("int64", 10**4_000, None),
        ("uint64", np.uint64(2**64 - 1), 2**64 - 1), ("int8", np.int64(127), 127),
        ("float64", 2**53 + 1, 2.0**53), ("float64", Decimal("0.1"), 0.1), ("float64", "7", None),
        ("float32", 1e39, None), ("string", 2**70, None), ("string", 7, None),
        ("date", datetime(2024, 5, 31, tzinfo=UTC), date(2024, 5, 31)),
        ("date", datetime(2024, 5, 31, 1, tzinfo=UTC), None),
        ("timestamp(ms)", AT, AT.replace(microsecond=123000)),
        ("timestamp(us)", "2026-03-01T12:00:00.123456Z", AT),
        ("timestamp(ms)", datetime(9999, 12, 31, 23, tzinfo=timezone(timedelta(hours=-5))), None),
        ("list<int8>", (1, 2), [1, 2]), ("list<int8>", np.array([1, 200]), None),
    ],
)  # fmt: skip
def test_values_of_python_are_exact_or_refused(kind: str, value: Any, stored: Any) -> None:
    """As over HTTP; the refusal names the record and what the column takes."""
    schema = StreamSchema((ColumnSpec("v", kind),))
    if stored is not None:
        batch = to_record_batch(1, [{"v": None}, {"v": value}], schema)
        assert batch.column("v").to_pylist() == [None, stored]
        return
    with pytest.raises(BadBlock, match=r"record 1: column v: is not .* [mM]ust be") as refused:
        to_record_batch(1, [{"v": None}, {"v": value}], schema)
    assert refused.value.record == 1


def test_data_frames_keep_all_digits() -> None:
    """Whole floats beyond 53 bits, nanoseconds of pandas, columns of mixed objects."""
    kinds = {"i": "int64", "d": "decimal(38, 9)", "t": "timestamp(ns)"}
    schema = StreamSchema(tuple(ColumnSpec(name, kind) for name, kind in kinds.items()))
    time = pd.Timestamp("2026-03-01T12:00:00.123456789Z")
    frame = pd.DataFrame({"i": [2.0**60, np.nan], "d": [2**53 + 1, 0.5], "t": [time, None]})
    mixed = frame.assign(d=pd.Series([2**53 + 1, 0.5], dtype=object))
    batch = to_record_batch(1, mixed, schema)
    assert batch.column("i").to_pylist() == [2**60, None]
    assert batch.column("d").to_pylist() == [Decimal(2**53 + 1), Decimal("0.5")]
    assert batch.column("t").cast(pa.int64()).to_pylist() == [time.value, None]
    rows = to_record_batch(1, [{"t": time}], schema)
    assert rows.column("t").cast(pa.int64()).to_pylist() == [time.value]
    coarse = StreamSchema((ColumnSpec("t", "timestamp(us)"),))
    with pytest.raises(BadBlock, match="record 0: column t"):
        to_record_batch(1, frame[["t"]], coarse)


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_the_newest_time_that_is_not_too_far_ahead_counts(unit: str) -> None:
    """Rounded down to milliseconds, also before 1970."""
    schema = StreamSchema(
        (ColumnSpec("t", f"timestamp({unit})", nullable=False),), event_time="t", max_future_s=60
    )
    now, per_s = 1_700_000_000, {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[unit]

    def newest(*seconds: float) -> int | None:
        wanted: Any = schema.arrow.field("t").type
        ticks = pa.array([int(s * per_s) for s in seconds], wanted)
        batch = pa.RecordBatch.from_arrays([ticks], schema=schema.arrow)
        return newest_event_ms(batch, schema, now * 1000)

    assert newest(now, now + 60, now + 61) == (now + 60) * 1000
    assert newest(now + 61) == NO_TIME
    assert newest(-5, -7) == -5000
    plain = StreamSchema((ColumnSpec("n", "int8"),))
    assert newest_event_ms(to_record_batch(1, [{"n": 1}], plain), plain, 0) is None


@pytest.mark.parametrize(
    "data",
    [b"", b"WB1", b"WB1\xff\xff\xff\x7f", encode_block(to_record_batch(1, [ROW], READINGS))[:-90]],
)
def test_bytes_that_are_no_block_are_refused(data: bytes) -> None:
    with pytest.raises(InvalidBlock):
        decode_block(data)
