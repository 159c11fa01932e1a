"""The request of a course: its workload, and the migration to the new number of nodes."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa

from algorithms.migration.problem import MigrationProblem
from algorithms.migration.single_step import SingleStep
from controlplane.wire.query import QueryText
from controlplane.wire.routing import (
    Action,
    AddQuery,
    AssignStream,
    MoveTasks,
    SetSchema,
    TaskRange,
    task_ranges_of,
)
from controlplane.wire.schema import ColumnSpec, StreamSchema

SCHEMA: Final = StreamSchema(
    (
        ColumnSpec("at", "timestamp(ms)", nullable=False),
        ColumnSpec("key", "int32", nullable=False),
        ColumnSpec("value", "int32"),
    ),
    event_time="at",
)
STREAMS: Final = 8
QUERY: Final = 1
TEXT: Final = QueryText(
    {"n": "count(*)", "mean": "mean(value)", "high": "max(value)"}, key=["key"], window_s=3_600.0
)
_FIRST_MS: Final = 1_600_000_000_000


@dataclass(frozen=True)
class Request:
    """The parameters of figure 15 (`algorithms.migration.experiments.live`), and which series."""

    minutes: int
    minute_s: float
    present: int
    nodes: int
    tasks: int
    keys: int
    rate: float
    tau: float
    seed: int
    series: str

    @property
    def most_nodes(self) -> int:
        """Return how many nodes the application has at most."""
        return max(self.present, self.nodes)

    @property
    def changes_at_s(self) -> float:
        """Return when the nodes change: at the beginning of the middle minute."""
        return (self.minutes // 2) * self.minute_s

    def owners(self) -> list[int]:
        """Return the node of each task at first: intervals of equal length."""
        parts = np.array_split(np.arange(self.tasks), self.present)
        return [node for node, part in enumerate(parts) for _ in part]

    def beginning(self) -> list[Action]:
        """Return the first routing table."""
        streams = tuple(range(1, STREAMS + 1))
        task_ranges = task_ranges_of(self.owners())
        text = json.dumps(TEXT.to_json())
        query = AddQuery(QUERY, 0, 0, streams, text, task_ranges)
        assigned = [AssignStream(stream, stream % 2) for stream in streams]
        return [*assigned, *(SetSchema(stream, SCHEMA) for stream in streams), query]

    def change(self, state: dict[int, int]) -> MoveTasks:
        """Return the migration that moves the fewest bytes (paper 004, section 4.1).

        `state`: bytes of each task's state, as they were measured.
        """
        sizes = np.array([max(1, state.get(task, 1)) for task in range(self.tasks)], np.float64)
        owners = np.array(self.owners())
        problem = MigrationProblem.of_owner(
            np.ones(self.tasks), sizes, owners, self.present, self.nodes, self.tau
        )
        after = SingleStep().solve(problem).assignment
        moves: list[TaskRange] = [
            (int(after[task]), task, task + 1)
            for task in range(self.tasks)
            if after[task] != owners[task]
        ]
        return MoveTasks(QUERY, tuple(moves))

    def records(self) -> Iterator[dict[int, pa.RecordBatch]]:
        """Yield what comes in each tenth of a second, by stream; keys are drawn from a Zipf law."""
        rng = np.random.default_rng(self.seed)
        share = 1 / np.arange(1, self.keys + 1) ** 0.8
        edges = np.cumsum(share / share.sum())
        count = max(STREAMS, round(self.rate / 10))
        tick = 0
        while True:
            cars = np.searchsorted(edges, rng.random(count)).astype(np.int32)
            yield dict(enumerate(self._blocks(rng, cars, tick), start=1))
            tick += 1

    def _blocks(self, rng: np.random.Generator, cars: Any, tick: int) -> Iterator[pa.RecordBatch]:
        for stream_cars in np.array_split(cars, STREAMS):
            size = len(stream_cars)
            times = np.full(size, _FIRST_MS + tick * 100, "datetime64[ms]")
            columns: list[Any] = [times, stream_cars, rng.integers(0, 3_000, size)]
            arrays = [pa.array(c).cast(f.type) for c, f in zip(columns, SCHEMA.arrow, strict=True)]
            yield pa.RecordBatch.from_arrays(arrays, schema=SCHEMA.arrow)
