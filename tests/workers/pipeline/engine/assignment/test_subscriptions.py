"""A pane belongs to the queries that read its stream, and to the tasks that the node owns."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from controlplane.wire.language.tree import Kind
from controlplane.wire.query import Computation, computation_of
from controlplane.wire.query_text import QueryText
from workers.pipeline.engine.assignment.subscriptions import (
    NOT_OWNED,
    Intake,
    NodeGroup,
    Subscription,
    TaskOwnership,
)
from workers.pipeline.engine.assignment.tasks import Tasks

COMPUTATION: Computation = computation_of(QueryText({"n": "count(*)"}), {"car": Kind.INT})
# The streams of each query.
STREAMS = {10: (1, 3), 20: (3,), 30: (2, 3, 5), 40: ()}


def subscription(
    query: int, streams: tuple[int, ...] = (1,), tasks: int = 1, owned: Sequence[int] = (0,)
) -> Subscription:
    mask = np.isin(np.arange(tasks), list(owned))
    return Subscription(query, query + 1, streams, tasks, mask)


def group(*subscriptions: Subscription, intake: Intake | None = None) -> NodeGroup:
    return NodeGroup.of(COMPUTATION, subscriptions, intake or Intake())


def test_records_of_a_former_only_task_are_for_its_successor() -> None:
    """Of two queries with one task when the records were routed, one has no successor here."""
    former = Intake(column="to")
    kept, gone = (replace(subscription(query, tasks=4), backlog=np.array([successor]))
                  for query, successor in ((10, 3), (20, NOT_OWNED)))  # fmt: skip
    rows = pa.table({"stream": [1, 1], "pane": [0, 1], "task": [0, 0]})
    owned = group(kept, gone, intake=former).owned(rows, ()).to_pydict()
    assert (owned["query"], owned["task"]) == ([10, 10], [3, 3])


def test_some_queries_of_a_group_read_their_own_streams() -> None:
    shared = group(*(subscription(query, streams) for query, streams in STREAMS.items()))
    assert shared.of_queries(STREAMS.keys()) is shared
    some = shared.of_queries({20, 30})
    assert [item.query for item in some.subscriptions] == [20, 30]
    assert some.streams == {2, 3, 5}


def test_a_query_of_one_task_reads_the_column_too() -> None:
    ownership = TaskOwnership(8, [0], "task", 2, [1])
    backlog = subscription(7).within(ownership)
    assert backlog is not None
    node = group(backlog, intake=Intake(column="task"))
    rows = pa.table({"stream": [1, 1], "task": [0, 1], "pane": [5, 6]})
    assert node.owned(rows, ()).to_pydict()["pane"] == [6]


def test_a_subscription_processes_what_was_routed_to_its_tasks() -> None:
    whole = subscription(7, tasks=4, owned=(1, 3))
    assert (whole.routed_tasks, whole.task_of.tolist()) == (4, [NOT_OWNED, 1, NOT_OWNED, 3])
    part = whole.within(TaskOwnership(8, [1, 3, 3], "", 6, [0, 3, 5]))
    assert part is not None
    assert part.routed_tasks == 6
    assert part.task_of.tolist() == [1, NOT_OWNED, NOT_OWNED, 3, NOT_OWNED, 3]
    assert part.owned.tolist() == [False, True, False, True]


@pytest.mark.parametrize(
    "ownership",
    [
        TaskOwnership(9, [1, 3]),
        TaskOwnership(8, [0, 2]),
        TaskOwnership(8, [4]),
        TaskOwnership(8, [1], routed_count=2, routed=[2]),
    ],
)
def test_other_incarnations_and_tasks_are_not_within(ownership: TaskOwnership) -> None:
    assert subscription(7, tasks=4, owned=(1, 3)).within(ownership) is None


def test_an_ownership_knows_what_was_routed_where() -> None:
    same, moved = TaskOwnership(1, [0, 2]), TaskOwnership(1, [0, 2, 2], "", 4, [0, 2, 3])
    assert (same.pairs, moved.pairs) == ([(0, 0), (2, 2)], [(0, 0), (2, 2), (3, 2)])
    assert (moved.routed_to(2), moved.routed_to(3), same.routed_to(2)) == ((2, 3), (), (2,))
    left = moved.without(0)
    assert left is not None
    assert (list(left.tasks), list(left.routed)) == ([2, 2], [2, 3])
    left = replace_routed(moved).without(2)
    assert left is not None
    assert (list(left.tasks), list(left.routed)) == ([0], [])
    assert same.without(9) == TaskOwnership(1, [0, 2])
    assert TaskOwnership(1, [4]).without(4) is None


def test_ownerships_of_one_query_are_joined_with_what_was_routed_to_them() -> None:
    kept, come = TaskOwnership(8, [1], "to", 4), TaskOwnership(8, [0], "to", 4, [3])
    joined = kept.joined(come)
    assert (list(joined.tasks), list(joined.routed)) == ([1, 0], [1, 3])
    plain = kept.joined(TaskOwnership(8, [0], "to", 4))
    assert (list(plain.tasks), list(plain.routed)) == ([0, 1], [])


def replace_routed(ownership: TaskOwnership) -> TaskOwnership:
    return ownership._replace(tasks=[0, 2], routed=[0, 3])


def test_tasks_of_a_node() -> None:
    one, split = subscription(7), subscription(8, (2, 3), tasks=4, owned=(1, 3))
    tasks = Tasks.of([group(one, split)])
    assert tasks.split == [8]
    owned = tasks.owned()
    assert owned == {7: TaskOwnership(8, [0], "", 1), 8: TaskOwnership(9, [1, 3], "", 4)}
    assert tasks.without({99}) is tasks
    assert list(tasks.without({7}).members) == [8]
    assert tasks.without({7, 8}).groups == ()
    within = tasks.within({8: replace_column(owned[8]), 9: owned[7]})
    assert list(within.members) == [8]
    assert within.groups[0].intake.column == "target"
    assert within.members[8].subscription.streams == (2, 3)


def replace_column(ownership: TaskOwnership) -> TaskOwnership:
    return ownership._replace(column="target")


def test_a_group_keeps_its_intake_for_some_queries() -> None:
    intake = Intake(column="task")
    some = group(subscription(7), subscription(8), intake=intake).of_queries({8})
    assert some.intake == replace(Intake(), column="task")
