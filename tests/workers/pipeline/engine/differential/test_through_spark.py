"""Random cases through one real Spark application, against DuckDB.

All cases run at once: their blocks are appended in random order and cuts, tasks move, and the
driver is killed with -9 in the middle. WEIR_DIFFERENTIAL_CASES says how many cases there are.
"""

import json
import os
import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import duckdb
import pytest
import redis

from controlplane.wire.producer import Producer
from controlplane.wire.routing.actions import Action
from controlplane.wire.routing.cluster_actions import AssignStream, SetSchema
from controlplane.wire.routing.query_actions import AddQuery, MoveTasks, SetAggregator
from controlplane.wire.routing.route import NO_AGGREGATOR, task_ranges_of
from tests.support.driver import Driver
from tests.support.whole_results import read_windows
from tests.workers.pipeline.engine.differential.cases import SCHEMA, Block, Case, random_case
from tests.workers.pipeline.engine.differential.queries import expected, found_windows
from tests.workers.pipeline.engine.differential.test_queries import compare
from tests.workers.pipeline.schedules.queries import PARTIAL_KEY
from tests.workers.pipeline.schedules.world import World

CASES: Final = int(os.environ.get("WEIR_DIFFERENTIAL_CASES", "24"))
CLUSTER, NODES, SPLITS = "random", 3, 2
# Each Python worker compiles all queries before its first batch.
PATIENCE_S: Final = 400.0


class Application:
    """One driver with all cases, and what was published and appended."""

    def __init__(self, client: "redis.Redis", url: str, directory: Path, cases: list[Case]) -> None:
        self.rng = random.Random(CASES)
        self.driver = Driver(url, directory, CLUSTER, nodes=NODES, splits=SPLITS)
        self.world = World(client, CLUSTER)
        self.cases = cases
        streams = [stream for case in cases for stream in case.streams]
        self.producer = Producer(url, CLUSTER, schemas=dict.fromkeys(streams, SCHEMA))
        self.world.publish([
            *(AssignStream(stream, stream % SPLITS) for stream in streams),
            *(SetSchema(stream, SCHEMA) for stream in streams),
            *(add for case in cases for add in self._arrivals(case)),
        ])  # fmt: skip

    def _arrivals(self, case: Case) -> Iterator[AddQuery]:
        rng = self.rng
        for query, (text, computation) in case.queries.items():
            can_split = bool(computation.key) or computation.join is not None
            owners = sorted(rng.randrange(NODES) for _ in range(3 if can_split else 1))
            is_merged = can_split and computation.join is None and rng.random() < 0.3
            yield AddQuery(
                query, 0, owners[0], case.streams, json.dumps(text.to_json()),
                task_ranges_of(owners) if can_split else (), PARTIAL_KEY if is_merged else "",
                rng.randrange(NODES) if is_merged else NO_AGGREGATOR,
            )  # fmt: skip

    def run(self) -> None:
        """Append everything, with a plan and a kill in between, and wait until all is read."""
        cuts = list(self._cuts())
        third = len(cuts) // 3
        self.driver.start()
        for at, blocks in enumerate(cuts):
            self._append(blocks)
            if at in (third, 2 * third):
                self.world.publish(self._moves())
            if at == third + 1:
                # With the plan under way.
                self._wait_for_more()
                self.driver.kill()
            if self.rng.random() < 0.3:
                self._wait_for_more()
        # An aggregator node has the last batch in the one behind it.
        self.driver.keep(lambda rows: self.world.is_read(rows[:-1]), PATIENCE_S)

    def _cuts(self) -> Iterator[list[Block]]:
        """Yield what is appended at once: blocks of several cases, each case in its order."""
        left = [list(case.blocks) for case in self.cases]
        while any(left):
            some = self.rng.sample([one for one in left if one], self.rng.randint(1, 4) if
                                   len([one for one in left if one]) >= 4 else 1)  # fmt: skip
            yield [one.pop(0) for one in some]

    def _append(self, blocks: Sequence[Block]) -> None:
        position = self.producer.append({one.stream: one.records for one in blocks})
        assert position is not None
        self.world.last = position

    def _moves(self) -> list[Action]:
        """Return a plan that moves a task of every third query, and aggregator nodes."""
        ops: list[Action] = []
        for query, route in self.world.table.queries.items():
            if query % 3 == 0:
                task = self.rng.randrange(len(route.owners()))
                ops.append(MoveTasks(query, ((self.rng.randrange(NODES), task, task + 1),)))
            if route.aggregator != NO_AGGREGATOR and self.rng.random() < 0.5:
                ops.append(SetAggregator(query, self.rng.randrange(NODES)))
        return ops

    def _wait_for_more(self) -> None:
        known = len(self.driver.telemetry())
        self.driver.keep(lambda rows: len(rows) > known or self.world.is_read(rows), PATIENCE_S)

    def end(self) -> None:
        """Stop the driver."""
        self.driver.kill()
        self.producer.close()


@pytest.mark.nightly("spark")
@pytest.mark.spark
def test_cases_through_spark_are_what_duckdb_says(
    redis_client: "redis.Redis", redis_server: str, tmp_path: Path,
    client: duckdb.DuckDBPyConnection,
) -> None:  # fmt: skip
    cases = [random_case(seed) for seed in range(CASES)]
    application = Application(redis_client, redis_server, tmp_path, cases)
    try:
        application.run()
        telemetry = application.driver.telemetry()
    finally:
        application.end()
    assert sum(row["in"] for row in telemetry) == _records(cases)
    assert any(row["moves"] for row in telemetry)
    faults = {fault["query"]: fault["why"] for row in telemetry for fault in row["faults"]}
    checked = 0
    for case in cases:
        case.put(client)
        checked += sum(_is_checked(redis_client, client, case, one, faults) for one in case.queries)
    assert checked >= sum(len(case.queries) for case in cases) / 2


def _is_checked(
    store: "redis.Redis", client: duckdb.DuckDBPyConnection, case: Case, query: int,
    faults: dict[int, Any],
) -> bool:  # fmt: skip
    """Compare the windows of a query; return whether DuckDB can compute it."""
    text, computation = case.queries[query]
    try:
        wanted = expected(client, computation, "records")
    except duckdb.Error:
        return False
    assert query not in faults, (text, faults[query])
    found = found_windows(read_windows(store, CLUSTER, query, computation), computation)
    compare(found, wanted, (case.number, query, text))
    return True


def _records(cases: Sequence[Case]) -> int:
    return sum(len(block.columns["ts"]) for case in cases for block in case.blocks)
