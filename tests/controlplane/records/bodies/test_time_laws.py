"""Times and dates of every format and unit become exactly these, or faults of their record.

The right values are computed with the calendar of Python and whole numbers.
"""

import io
import json
from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any, Final
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from controlplane.records.bodies import Format, conform
from controlplane.wire.errors import BadBlock
from controlplane.wire.records.record_codec import to_record_batch
from controlplane.wire.schema import ColumnSpec, StreamSchema

PER_S: Final = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
UNITS: Final = st.sampled_from(sorted(PER_S))
EPOCH: Final = date(1970, 1, 1).toordinal()
FIRST_S: Final = (1 - EPOCH) * 86_400
END_S: Final = (date.max.toordinal() + 1 - EPOCH) * 86_400
REFUSED: Final = object()


def ticks(nanoseconds: int, unit: str) -> Any:
    """Return a moment as whole units, those that have passed, if the column has its year."""
    if not FIRST_S <= nanoseconds // 10**9 < END_S:
        return REFUSED
    # The least number of 64 bits is not a time in numpy and pandas.
    if unit == "ns" and not -(2**63) < nanoseconds < 2**63:
        return REFUSED
    return nanoseconds // (10**9 // PER_S[unit])


def schema_of(kind: str) -> StreamSchema:
    return StreamSchema((ColumnSpec("v", kind),))


def check(body: bytes, form: Format, kind: str, wanted: list[Any], zone: str = "") -> None:
    """Check that the record of each refused value is a fault, and the others have their values."""
    found = conform(body, form, schema_of(kind), zone)
    assert sorted(found.faults) == [i for i, value in enumerate(wanted) if value is REFUSED]
    column = found.batch.column("v")
    held = column.cast(pa.int32() if kind == "date" else pa.int64()).to_pylist()
    assert held == [value for value in wanted if value is not REFUSED]
    assert all(reason and text for _, reason, text in found.faulty())


def arrow_of(array: Any) -> bytes:
    sink = io.BytesIO()
    table = pa.table({"v": array})
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


@st.composite
def time_texts(draw: st.DrawFn) -> tuple[str, int | None]:
    """Draw ISO 8601 text with its moment in nanoseconds, None if there is no such moment."""
    year = draw(st.one_of(st.integers(0, 9999), st.sampled_from([0, 1, 1677, 1969, 2262, 9999])))
    month, day = draw(st.integers(1, 12)), draw(st.integers(0, 31))
    hour, minute, second = (
        draw(st.integers(0, 24)),
        draw(st.integers(0, 60)),
        draw(st.integers(0, 60)),
    )
    form = draw(st.sampled_from(["h", "hm", "hms", "hms."]))
    digits = draw(st.text("0123456789", min_size=1, max_size=10)) if form == "hms." else ""
    clock = {"h": f"{hour:02}", "hm": f"{hour:02}:{minute:02}"}.get(
        form, f"{hour:02}:{minute:02}:{second:02}"
    )
    minute, second = minute if form != "h" else 0, second if "s" in form else 0
    hours, minutes = draw(st.integers(0, 24)), draw(st.integers(0, 60))
    sign, zone_form = (
        draw(st.sampled_from("+-")),
        draw(st.sampled_from(["Z", "hh", "hhmm", "hh:mm"])),
    )
    zone = {"Z": "Z", "hh": f"{sign}{hours:02}", "hhmm": f"{sign}{hours:02}{minutes:02}"}.get(
        zone_form, f"{sign}{hours:02}:{minutes:02}"
    )
    offset = 0
    if zone_form != "Z":
        minutes = minutes if zone_form != "hh" else 0
        offset = (1 if sign == "+" else -1) * (hours * 60 + minutes) * 60
        if hours > 23 or minutes > 59:
            offset = 0
            hour = 24
    between, point = draw(st.sampled_from("T ")), "." if digits else ""
    text = f"{year:04}-{month:02}-{day:02}{between}{clock}{point}{digits}{zone}"
    try:
        days = date(year, month, day).toordinal() - EPOCH
    except ValueError:
        return text, None
    if hour > 23 or minute > 59 or second > 59 or len(digits) > 9:
        return text, None
    moment = (days * 86_400 + hour * 3600 + minute * 60 + second - offset) * 10**9
    moment += int(digits.ljust(9, "0"))
    # More than six digits name nanoseconds, which have fewer years.
    return text, moment if len(digits) <= 6 or -(2**63) < moment < 2**63 else None


@given(UNITS, st.lists(time_texts(), min_size=1, max_size=8))
@example("ms", [("9999-12-31T23:59:59-05:00", END_S * 10**9)])
@example("us", [("0001-01-01T00:00:00+00:01", (FIRST_S - 60) * 10**9)])
@example(
    "ms",
    [("1969-12-31T23:59:59.9999Z", -100_000), ("1969-12-31T23:59:59.123456789Z", -876_543_211)],
)
@example("ns", [("1677-09-21T00:12:43.145224193Z", -(2**63) + 1)])
@example("ns", [("1677-09-21T00:12:43.145224192Z", None)])
@example(
    "ns", [("2262-04-11T23:47:16.854775807Z", 2**63 - 1), ("2262-04-11T23:47:16.854775808Z", None)]
)
@settings(max_examples=150)
def test_times_as_text(unit: str, drawn: list[tuple[str, int | None]]) -> None:
    """Of the years 1 to 9999 in UTC, in JSON and CSV, cut to the unit."""
    wanted = [REFUSED if moment is None else ticks(moment, unit) for _, moment in drawn]
    kind, texts = f"timestamp({unit})", [text for text, _ in drawn]
    check(json.dumps([{"v": text} for text in texts]).encode(), Format.JSON, kind, wanted)
    check("\n".join(["v", *texts, ""]).encode(), Format.CSV, kind, wanted)
    check(arrow_of(pa.array(texts, pa.large_string())), Format.ARROW, kind, wanted)


@given(
    UNITS,
    st.lists(
        st.one_of(
            st.integers(),
            st.integers(FIRST_S * 1000 - 2, END_S * 1000 + 2),
            st.integers(-3_000, 3_000),
        ),
        min_size=1,
        max_size=8,
    ),
)
@settings(max_examples=100)
def test_milliseconds(unit: str, numbers: list[int]) -> None:
    """In every unit, also with a fraction of 0, and as text in CSV."""
    wanted = [ticks(number * 10**6, unit) for number in numbers]
    kind = f"timestamp({unit})"
    check(json.dumps([{"v": number} for number in numbers]).encode(), Format.JSON, kind, wanted)
    body = ",".join(f'{{"v":{number}.0}}' for number in numbers)
    check(f"[{body}]".encode(), Format.JSON, kind, wanted)
    check("\n".join(["v", *map(str, numbers), ""]).encode(), Format.CSV, kind, wanted)
    halves = ",".join(f'{{"v":{number}.5}}' for number in numbers)
    check(f"[{halves}]".encode(), Format.JSON, kind, [REFUSED] * len(numbers))


INT64: Final = st.one_of(st.integers(-(2**63), 2**63 - 1), st.integers(-5_000, 5_000))


@given(
    UNITS,
    UNITS,
    st.lists(st.one_of(INT64, st.none()), min_size=1, max_size=8),
    st.sampled_from([None, "UTC", "Asia/Tokyo"]),
)
@settings(max_examples=150)
def test_arrow_times_of_every_unit(
    source: str, unit: str, values: list[int | None], tz: str | None
) -> None:
    """The earlier of two times of the column; a producer refuses what is not one of its times."""
    array = pa.array(values, pa.int64()).cast(pa.timestamp(source, tz))
    nanoseconds = [None if value is None else value * (10**9 // PER_S[source]) for value in values]
    wanted = [None if value is None else ticks(value, unit) for value in nanoseconds]
    kind = f"timestamp({unit})"
    check(arrow_of(array), Format.ARROW, kind, wanted)
    lists = pa.ListArray.from_arrays(list(range(len(array) + 1)), array)
    found = conform(arrow_of(lists), Format.ARROW, schema_of(f"list<{kind}>"))
    assert sorted(found.faults) == [i for i, value in enumerate(wanted) if value is REFUSED]
    step = 10**9 // PER_S[unit]
    cut = [value is not None and value % step != 0 for value in nanoseconds]
    refused = [one is REFUSED or is_cut for one, is_cut in zip(wanted, cut, strict=True)]
    if any(refused):
        with pytest.raises(BadBlock) as error:
            to_record_batch(1, pa.table({"v": array}), schema_of(kind))
        assert error.value.record == refused.index(True)
    else:
        batch = to_record_batch(1, pa.table({"v": array}), schema_of(kind))
        assert batch.column("v").cast(pa.int64()).to_pylist() == wanted


@given(
    UNITS,
    st.lists(
        st.datetimes(
            timezones=st.sampled_from(
                [UTC, timezone(timedelta(hours=-23, minutes=-59)), ZoneInfo("Europe/Berlin")]
            )
            | st.none()
        ),
        min_size=1,
        max_size=8,
    ),
)
@settings(max_examples=100)
def test_datetimes_of_python(unit: str, moments: list[datetime]) -> None:
    """A naive one is in UTC."""
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    wanted = []
    for moment in moments:
        aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        micros = (aware.replace(tzinfo=UTC) - epoch) // timedelta(microseconds=1)
        micros -= (aware.utcoffset() or timedelta()) // timedelta(microseconds=1)
        wanted.append(ticks(micros * 1000, unit))
    kind = schema_of(f"timestamp({unit})")
    rows = [{"v": moment} for moment in moments]
    if REFUSED in wanted:
        with pytest.raises(BadBlock) as error:
            to_record_batch(1, rows, kind)
        assert error.value.record == wanted.index(REFUSED)
    else:
        batch = to_record_batch(1, rows, kind)
        assert batch.column("v").cast(pa.int64()).to_pylist() == wanted


@given(
    st.lists(
        st.tuples(st.integers(0, 10_000), st.integers(0, 13), st.integers(0, 32)),
        min_size=1,
        max_size=8,
    )
)
@settings(max_examples=100)
def test_dates_as_text(parts: list[tuple[int, int, int]]) -> None:
    wanted: list[Any] = []
    for year, month, day in parts:
        try:
            wanted.append(date(year, month, day).toordinal() - EPOCH)
        except ValueError:
            wanted.append(REFUSED)
    texts = [f"{year:04}-{month:02}-{day:02}" for year, month, day in parts]
    check(json.dumps([{"v": text} for text in texts]).encode(), Format.JSON, "date", wanted)
    check("\n".join(["v", *texts, ""]).encode(), Format.CSV, "date", wanted)


@given(
    st.lists(
        st.integers(-(2**31), 2**31 - 1) | st.integers(-800_000, 3_000_000), min_size=1, max_size=8
    ),
    UNITS,
    st.integers(0, 1),
)
@settings(max_examples=100)
def test_arrow_dates_and_midnights(days: list[int], unit: Any, beyond: int) -> None:
    """A time that is not a midnight is not a date."""
    in_years = [FIRST_S <= day * 86_400 < END_S for day in days]
    wanted = [day if known else REFUSED for day, known in zip(days, in_years, strict=True)]
    check(arrow_of(pa.array(days, pa.int32()).cast(pa.date32())), Format.ARROW, "date", wanted)
    ms = [day * 86_400_000 for day in days]
    check(arrow_of(pa.array(ms, pa.int64()).cast(pa.date64())), Format.ARROW, "date", wanted)
    near = [day % 100_000 for day in days]
    times = pa.array([day * 86_400 * PER_S[unit] + beyond for day in near], pa.timestamp(unit))
    wanted = [REFUSED if beyond else day for day in near]
    check(arrow_of(times), Format.ARROW, "date", wanted)


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2024-03-31T02:30:00", None), ("2024-03-31T03:00:00.5", "2024-03-31T01:00:00.500000"),
        ("2024-10-27T02:30:00", "2024-10-27T00:30:00"), ("1800-01-01T00:00", "1799-12-31T23:06:32"),
        ("0001-01-01T00:00:00", None), ("9999-12-31T23:59:59.999999", "9999-12-31T22:59:59.999999"),
        ("2024-07-01T12:00:00Z", "2024-07-01T12:00:00"),
    ],
)  # fmt: skip
def test_times_of_a_zone(text: str, moment: str | None) -> None:
    """A time that the zone's clocks skip does not exist; of one that they show twice, the first."""
    kind, epoch = "timestamp(us)", datetime(1970, 1, 1, tzinfo=UTC)
    wanted: Any = REFUSED
    if moment is not None:
        since = datetime.fromisoformat(moment).replace(tzinfo=UTC) - epoch
        wanted = since // timedelta(microseconds=1)
    check(json.dumps([{"v": text}]).encode(), Format.JSON, kind, [wanted], "Europe/Berlin")
    check(f"v\n{text}\n".encode(), Format.CSV, kind, [wanted], "Europe/Berlin")
    if not text.endswith("Z"):
        naive = pa.array([datetime.fromisoformat(text)])
        check(arrow_of(naive), Format.ARROW, kind, [wanted], "Europe/Berlin")
