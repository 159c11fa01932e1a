"""Partitions of sources: each is read by a split node of its own, and redirected on its own."""

from collections import Counter
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

import numpy as np
import pytest

from algorithms.admission.strategies import Profile
from controlplane.access.roles import Actor
from controlplane.catalog.split_reading import reading_of
from controlplane.catalog.streams import StreamFilters, streams_listing
from controlplane.clusters.scenarios.disturbed_loads import grown_stream
from controlplane.connections import redis_client
from controlplane.errors import Away
from controlplane.explain import explain, parse_subject
from controlplane.models import Cluster, Proposal, Redirection, Stream
from controlplane.planners.admission import problem as admission
from controlplane.planners.admission.inputs import AdmissionInput, AdmittedStream
from controlplane.planners.admission.outlook import outlook_of
from controlplane.planners.admission.problem import Outlook, actions_of, plan_with_room
from controlplane.planners.admission.split_nodes import split_node_table
from controlplane.planners.admission.stream_report import stream_report
from controlplane.planning.action_text import action_text, names_of
from controlplane.policies.exclusions import add_exclusion
from controlplane.proposals import computation, decisions, requests
from controlplane.proposals.executions import control
from controlplane.topology.rows import current_table
from controlplane.topology.split_nodes import redirect, set_split_capacity
from controlplane.topology.streams import StreamSpec, register
from controlplane.watch import watch_cluster
from controlplane.wire.routing.actions import TableDraft
from controlplane.wire.routing.cluster_actions import AssignPartition, SetSplitCount
from controlplane.wire.routing.split_assignment import SourcePartition, SplitAssignment
from tests.support.admission import arrived
from tests.support.cluster import replayed_table, small_cluster
from tests.support.execution import carried_out
from tests.support.partitions import with_partitions
from tests.support.redis_server import free_port
from tests.support.schemas import REPORTS
from tests.support.watching import measured, newest

pytestmark = pytest.mark.django_db(transaction=True)
# Records/s of the partitions of s0, which no split node of 100 records/s could read alone.
RATES = {0: 70.0, 1: 10.0, 2: 60.0, 3: 10.0}


@pytest.fixture
def stream(operator: Actor, sf: Cluster, now: datetime) -> Stream:
    """The stream s0, of whose partitions split node 0 reads 0 and 2: 130 records/s of its 100."""
    set_split_capacity(operator, sf, 100.0, emulated=True)
    for row in sf.streams.all():
        redirect(operator, row, 0 if row.name == "s0" else 1)
    rates = {f"s{i}": [1.0] * 20 for i in range(6)}
    arrived(sf, now, rates | {"s0": [sum(RATES.values())] * 20})
    measured(sf, now)
    sf.refresh_from_db()
    Cluster.objects.filter(pk=sf.pk).update(applied_version=sf.routing_version, desired="running")
    Redirection.objects.all().delete()
    stream = sf.streams.get(name="s0")
    stream.cluster.refresh_from_db()
    return with_partitions(stream, {number: 3 * rate for number, rate in RATES.items()})


def splits_of(stream: Stream) -> dict[int, int]:
    """Return the split node of each partition by the table that the deltas lead to."""
    table = replayed_table(stream.cluster)
    assert current_table(stream.cluster_id).assignment == table.assignment
    return {number: table.assignment.of(stream.pk, number) for number in RATES}


def loads_of(splits: Mapping[int, int]) -> dict[int, float]:
    """Return the records/s of s0 by split node."""
    return {split: sum(RATES[n] for n, own in splits.items() if own == split)
            for split in set(splits.values())}  # fmt: skip


def test_the_loop_redirects_partitions_of_an_overloaded_split_node(
    stream: Stream, now: datetime
) -> None:
    before = splits_of(stream)
    assert loads_of(before) == {0: 130.0, 1: 20.0}
    watch_cluster(stream.cluster, now)
    assert newest(stream.cluster, "admission").code == "redirected"
    after = splits_of(stream)
    # The other streams have 5 records/s on split node 1.
    assert max(loads_of(after).values()) <= 95.0
    rows = {row.partition: (row.source, row.target) for row in Redirection.objects.all()}
    assert rows == {n: (before[n], after[n]) for n in RATES if before[n] != after[n]}
    row = Redirection.objects.latest("id")
    assert row.place.text in {f"partition {number}" for number in rows}
    assert "130 % of its capacity" in row.reason
    assert f"{len(rows)} partition" in row.reason
    watch_cluster(stream.cluster, now + timedelta(seconds=1))
    assert newest(stream.cluster, "admission").code == "within"
    assert splits_of(stream) == after


def test_split_nodes_and_the_report_count_what_each_one_reads(stream: Stream) -> None:
    rows = split_node_table(stream.cluster)
    assert {row.index: row.streams for row in rows} == {0: 1, 1: 6}
    assert {row.index: row.expected for row in rows} == pytest.approx({0: 130.0, 1: 25.0})
    outlook = outlook_of(stream)
    assert outlook is not None
    assert outlook.left == pytest.approx([100 / (130 / 150)] * 12, abs=0.1)
    report = stream_report(stream)
    assert report.own.index == 0
    assert report.shares == pytest.approx({0: 130 / 150, 1: 20 / 150})
    assert report.planned.targets
    assert max(item.after for item in report.splits) <= 100


@pytest.mark.parametrize("partition", [0, None])
def test_a_further_split_node_reads_what_is_redirected_to_it_only(
    operator: Actor, stream: Stream, partition: int | None
) -> None:
    """Though the round-robin of the others changes with the number of split nodes."""
    other = stream.cluster.streams.get(name="s1")
    with_partitions(other, RATES)
    before, others = splits_of(stream), splits_of(other)
    redirect(operator, stream, 4, partition=partition)
    assert splits_of(other) == others
    if partition is None:
        assert splits_of(stream) == {0: 4, 1: 0, 2: 1, 3: 2}
    else:
        assert splits_of(stream) == before | {0: 4}


def test_an_approved_plan_redirects_partitions_and_a_rollback_restores_them(
    operator: Actor, approver: Actor, stream: Stream
) -> None:
    before = splits_of(stream)
    proposal = requests.request(operator, stream.cluster, "profile", {}, planner="admission")
    computation.compute(proposal.pk)
    proposal.refresh_from_db()
    assert proposal.state == Proposal.State.READY, proposal.error
    overload = proposal.before["split_overload"], proposal.after["split_overload"]
    assert overload == pytest.approx((30.0, 0.0))
    moved = [row.action for row in proposal.plan if isinstance(row.action, AssignPartition)]
    assert proposal.after["redirected"] == len(moved) > 0
    planned = proposal.plan.of_kinds("assign_partition")[0]
    text = str(action_text(planned, names_of(stream.cluster, proposal.plan)))
    assert text.startswith(f"Split node of partition {moved[0].partition} of s0: round-robin")
    decisions.approve(approver, proposal, proposal.seal)
    carried_out(proposal)
    assert max(loads_of(splits_of(stream)).values()) <= 95.0
    control.roll_back(operator, proposal, proposal.seal, "back")
    carried_out(proposal)
    stream.refresh_from_db()
    assert (splits_of(stream), stream.partition_splits) == (before, {})


@pytest.mark.parametrize("is_proposed", [False, True])
def test_an_excluded_stream_keeps_its_partitions(
    operator: Actor, approver: Actor, stream: Stream, now: datetime, *, is_proposed: bool
) -> None:
    """Also if the number of split nodes changes for others: it is where others go round."""
    before = splits_of(stream)
    add_exclusion(operator, stream.cluster, "stream", "s0", "kept", now + timedelta(hours=1))
    heavy = {f"s{i}": [70.0] * 20 for i in range(1, 6)}
    arrived(stream.cluster, now + timedelta(seconds=210), heavy)
    if is_proposed:
        proposal = requests.request(operator, stream.cluster, "profile", {}, planner="admission")
        computation.compute(proposal.pk)
        proposal.refresh_from_db()
        decisions.approve(approver, proposal, proposal.seal)
        carried_out(proposal)
    else:
        watch_cluster(stream.cluster, now)
        assert newest(stream.cluster, "admission").code == "redirected"
    stream.cluster.refresh_from_db()
    assert stream.cluster.splits > 2
    assert splits_of(stream) == before


def test_every_split_node_that_reads_a_source_counts(
    operator: Actor, stream: Stream, now: datetime
) -> None:
    """In lists, explanations and scenarios, and for a new stream: sources are read by all."""
    cluster = stream.cluster
    measured(cluster, now, split_utilisation=[0.2, 0.6], split_latency=[10.0, 30.0])
    rows = {row.stream.name: row for row in streams_listing(cluster, StreamFilters()).page.rows}
    assert (rows["s0"].splits, rows["s0"].split_latency_ms) == ([0, 1], 30.0)
    assert {tuple(row.splits) for name, row in rows.items() if name != "s0"} == {(1,)}
    for filters, names in ((StreamFilters(split=0), ["s0"]), (StreamFilters(split=1), [*rows])):
        found = streams_listing(cluster, filters).page.rows
        assert [row.stream.name for row in found] == names
    report = explain(cluster, parse_subject("stream:s0"), now)
    facts = {fact.name: fact.value for fact in report.facts}
    assert facts["split_node"] == 1.0
    assert facts["split_utilisation"] == pytest.approx(0.6)
    Stream.objects.filter(pk=stream.pk).update(rate=150.0)
    assert grown_stream(cluster).name == "s0"
    (new,) = register(operator, cluster, [StreamSpec("fresh", schema=REPORTS.to_json())])
    assert new.split == 1, "split node 0 has partitions of 130 records/s"


def test_a_split_node_whose_partitions_are_elsewhere_does_not_list_the_stream(
    operator: Actor, stream: Stream
) -> None:
    with_partitions(stream, {0: 1.0, 1: 1.0})
    redirect(operator, stream, 1, partition=0)
    assert stream.split == 0
    stream.cluster.refresh_from_db()
    names = [[row.stream.name for row in
              streams_listing(stream.cluster, StreamFilters(split=split)).page.rows]
             for split in (0, 1)]  # fmt: skip
    assert names == [[], [f"s{i}" for i in range(6)]]


def test_no_split_node_opens_while_it_is_unknown_which_partitions_have_to_stay(
    operator: Actor, stream: Stream, settings: Any
) -> None:
    redis, settings.REDIS_URL = settings.REDIS_URL, f"redis://127.0.0.1:{free_port()}/0"
    with pytest.raises(Away):
        redirect(operator, stream, 4, partition=0)
    settings.REDIS_URL = redis
    stream.cluster.refresh_from_db()
    assert (stream.cluster.splits, splits_of(stream)) == (2, {0: 0, 1: 1, 2: 0, 3: 1})


def topics(by: Actor, cluster: Cluster, count: int) -> list[Stream]:
    """Declare topics of the same rate."""
    source = {"servers": "127.0.0.1:9092", "topic": "orders"}
    first, schema = cluster.streams.count(), REPORTS.to_json()
    specs = [StreamSpec(f"t{first + i}", "", schema, 10.0, source=source) for i in range(count)]
    return register(by, cluster, specs)


def test_new_topics_are_spread_over_the_split_nodes(operator: Actor) -> None:
    """One with one partition loads its split node; of more, the first partitions are spread."""
    cluster = small_cluster(operator, stream_count=0)
    one = [*topics(operator, cluster, 5), *(topics(operator, cluster, 1)[0] for _ in range(5))]
    assert Counter(row.split for row in one) == {0: 5, 1: 5}
    Stream.objects.filter(pk=one[0].pk).update(rate=100.0)
    (log,) = register(operator, cluster, [StreamSpec("log", "", REPORTS.to_json(), 90.0)])
    assert log.split == 1 - one[0].split
    several = []
    for _ in range(4):
        (row,) = topics(operator, cluster, 1)
        several.append(with_partitions(row, dict.fromkeys(RATES, 0.0)))
    assert Counter(row.split for row in several) == {0: 2, 1: 2}


def test_parts_are_equal_until_records_arrive_and_unknown_without_redis(stream: Stream) -> None:
    with_partitions(stream, dict.fromkeys(RATES, 0.0))
    assert reading_of(stream.cluster).shares()[stream.pk] == {0: 0.5, 1: 0.5}
    with_partitions(stream, {0: 9.0})
    assert reading_of(stream.cluster).shares()[stream.pk] == {0: 1.0}
    redis_client().flushdb()
    assert reading_of(stream.cluster).shares()[stream.pk] == {0: 1.0}


def admission_input(rates: Mapping[int, float], parts: int) -> AdmissionInput:
    """Return streams with these rates; the first one has partitions with equal parts."""
    equal = [(number, 1 / parts) for number in range(parts)]
    streams = [AdmittedStream(id_, f"s{id_}", [rate] * 9, {}, {}, equal if id_ == 1 else ())
               for id_, rate in rates.items()]  # fmt: skip
    return AdmissionInput(10, 100.0, {}, streams)


@pytest.mark.parametrize(("parts", "first"), [(8, 0), (64, 1), (256, 2)])
def test_split_nodes_close_and_open_and_read_what_was_planned(parts: int, first: int) -> None:
    """Whatever the number of split nodes becomes, by which the partitions go round."""
    for rate, splits, needed in ((40.0, 3, 1), (250.0, 1, 3), (330.0, 3, 4)):
        present = TableDraft({}, {1: min(first, splits - 1), 2: 0}, split_count=splits)
        given = admission_input({1: rate, 2: 5.0}, parts)
        split, plan = plan_with_room(
            Profile(foresee=True, consolidate=True).solve, given, present.assignment, Outlook()
        )
        after = present.copy()
        for action in actions_of(split, plan, splits):
            action.apply_to(after)
        assert after.split_count == needed
        assert max(after.splits.values()) < needed
        loads = np.zeros(needed)
        for number in range(parts):
            loads[after.assignment.of(1, number)] += rate / parts
        loads[after.splits[2]] += 5.0
        assert loads.max() <= 100.0
        labels = dict(zip(split.partitions, admission._targets(split, plan), strict=True))
        assert {place: after.assignment.of(*place) for place in labels} == labels


def test_a_split_node_stays_for_a_partition_that_nobody_knows() -> None:
    """Without Redis the partitions of a source are unknown, not their assignments."""
    streams = [AdmittedStream(number, f"s{number}", [5.0] * 9, {}, {}, ()) for number in (1, 2)]
    present = TableDraft({}, {1: 0, 2: 1}, split_count=6)
    present.partitions[SourcePartition(1, 3)] = 5
    solve = Profile(foresee=True, consolidate=True).solve
    given = AdmissionInput(10, 100.0, {}, streams)
    split, plan = plan_with_room(solve, given, present.assignment, Outlook())
    for action in actions_of(split, plan, 6):
        action.apply_to(present)
    assert present.split_count == 6
    assert present.splits[1] == present.splits[2]


def test_partitions_of_excluded_streams_stay_before_the_number_changes() -> None:
    """A proposal may end after any step."""
    given = admission_input({1: 60.0, 2: 90.0, 3: 90.0}, 4)
    present = TableDraft({}, {1: 0, 2: 0, 3: 1}, split_count=2)
    before = {number: present.assignment.of(1, number) for number in range(4)}
    solve = Profile(foresee=True).solve
    split, plan = plan_with_room(solve, given, present.assignment, Outlook(), fixed=[1])
    actions = actions_of(split, plan, 2)
    assert any(isinstance(action, SetSplitCount) for action in actions)
    for action in actions:
        action.apply_to(present)
        assert {number: present.assignment.of(1, number) for number in range(4)} == before


def test_more_partitions_than_a_plan_redirects_stay_in_the_round_robin() -> None:
    given = admission_input({1: 90.0, 2: 80.0, 3: 40.0}, admission.MOST_PARTITIONS + 1)
    present = SplitAssignment({1: 0, 2: 1, 3: 1}, {}, 2)
    split, plan = plan_with_room(Profile(foresee=True).solve, given, present, Outlook())
    assert split.partitions == [SourcePartition(2), SourcePartition(3)]
    assert split.problem.capacities == pytest.approx([55.0, 55.0], abs=1.0)
    actions = actions_of(split, plan, 2)
    assert actions
    assert not any(isinstance(action, AssignPartition) for action in actions)
