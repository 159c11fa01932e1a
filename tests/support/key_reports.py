"""A report on the keys of a query as the page shows it: requests by path over eight nodes."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from controlplane.models import Query
from controlplane.planners.partitioning.key_report import (
    GroupingReplay,
    KeyReport,
    KeyShare,
    SkewPoint,
    TaskLoad,
)
from controlplane.wire.key_samples import KeySample

CAPACITIES: Final = (1000.0,) * 6 + (1500.0,) * 2
LOADS: Final = (335.0, 342.0, 338.0, 560.0, 336.0, 340.0, 610.0, 739.0)
TOTAL: Final = sum(LOADS)
_KEYS: Final = (
    ("/checkout", 0.31, (3, 6)), ("/", 0.114, (5, 7)), ("/search", 0.08, (0, 7)),
    ("/cart", 0.062, (1, 4)), ("/login", 0.05, (2, 6)), ("/api/items", 0.041, (4, 5)),
    ("/product", 0.034, (1, 2)), ("/api/price", 0.028, (5, 7)), ("/account", 0.024, (0, 4)),
    ("/api/stock", 0.02, (1, 7)), ("/img/logo", 0.017, (0, 2)), ("/help", 0.014, (3, 5)),
    ("/orders", 0.012, (4, 6)), ("/api/login", 0.011, (0, 1)), ("/returns", 0.009, (2, 3)),
    ("/gift", 0.008, (1, 6)), ("/stores/berlin/opening-hours?week=47&lang=de", 0.007, (0, 5)),
    ("/api/geo", 0.006, (2, 4)), ("/robots.txt", 0.006, (3, 7)), ("/jobs", 0.005, (1, 5)),
)  # fmt: skip


def tasks_of(loads: Sequence[float] = LOADS) -> list[TaskLoad]:
    """Return a task on each node, with these records/s."""
    pairs = enumerate(zip(CAPACITIES, loads, strict=True))
    return [TaskLoad(task, task, f"node {task}", size, load) for task, (size, load) in pairs]


def key_report(moment: datetime | None = None, **changed: Any) -> KeyReport:
    """Return a report whose newest sample is from `moment`, by default now."""
    moment = moment or datetime.now(UTC)
    report = KeyReport(
        query="errors-by-path",
        sampled_at=moment,
        span_s=600,
        sampled=412_000,
        records_per_s=TOTAL,
        keys=[
            KeyShare(label, share, share * TOTAL, {first: 0.52, second: 0.48})
            for label, share, (first, second) in _KEYS
        ],
        distinct=1840,
        exponent=1.18,
        tasks=tasks_of(),
        imbalance=0.56 - TOTAL / sum(CAPACITIES),
        memory=3404,
        pairs_per_key=1.85,
        groupings=groupings(),
        recommended="head_aware",
        history=history(moment),
        replay_error=0.02,
    )
    return replace(report, **changed)


def groupings() -> list[GroupingReplay]:
    """Return what five groupings give; partial key grouping is in use."""
    mean = TOTAL / sum(CAPACITIES)
    even = [size / sum(CAPACITIES) for size in CAPACITIES]
    by_key = [0.082, 0.079, 0.085, 0.319, 0.078, 0.083, 0.124, 0.15]
    measured = [load / TOTAL for load in LOADS]
    rows: list[tuple[str, str, dict[str, Any], list[float], int, float]] = [
        ("key", "Key grouping", {}, by_key, 1840, 0.0),
        ("partial_key", "Partial key grouping", {}, measured, 3404, 56.7),
        ("random_choices", "Power of random choices", {"eps": 0.02}, even, 6256, 104.3),
        ("consistent_grouping", "Consistent grouping", {"slot": 2000}, even, 2281, 38.0),
        ("head_aware", "Head-aware grouping", {"head": 0.02, "choices": 4}, even, 1891, 31.5),
    ]  # fmt: skip
    return [
        GroupingReplay(
            name=name, title=title, parameters=parameters, text="", loads=loads,
            imbalance=max(
                load * TOTAL / size for load, size in zip(loads, CAPACITIES, strict=True)
            ) - mean,
            memory=memory, pairs_per_key=memory / 1840, partials_per_s=partials,
            in_use=name == "partial_key", recommended=name == "head_aware",
        )
        for name, title, parameters, loads, memory, partials in rows
    ]  # fmt: skip


def history(moment: datetime, points: int = 360) -> list[SkewPoint]:
    """Return a point a minute: key grouping until a third, then partial key grouping."""
    return [
        SkewPoint(
            time=moment - timedelta(minutes=points - 1 - place),
            top_share=0.2 + 0.11 * max(0.0, place / points - 0.3) / 0.7,
            top10_share=0.6 + 0.16 * place / points,
            imbalance=0.18 if place < points / 3 else 0.1 + 0.06 * place / points,
            grouping="key" if place < points / 3 else "partial_key",
        )
        for place in range(points)
    ]


def stored_samples(query: Query, batch: int, clock_ms: int) -> list[KeySample]:
    """Return a sample of a split node: 4,000 records/s, of which the first key has 40 %."""
    tasks = query.task_count
    counts = [400, *(max(1, 150 // rank) for rank in range(1, 100))]
    hashes = [place * 0x9E3779B97F4A7C15 % 2**64 for place in range(1, len(counts) + 1)]
    records = [0] * tasks
    for value, count in zip(hashes, counts, strict=True):
        records[value % tasks] += 4 * count
    return [
        KeySample(
            query=query.pk,
            batch=batch,
            split=0,
            clock_ms=clock_ms,
            elapsed_ms=1000,
            records=sum(records),
            hashes=hashes,
            counts=counts,
            labels=[f"key {place}" for place in range(32)],
            tasks=[
                {value % tasks: count}
                for value, count in zip(hashes[:32], counts[:32], strict=True)
            ],
            task_records=records,
        )
    ]
