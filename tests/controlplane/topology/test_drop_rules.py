"""Drops: set, changed and lifted, so that no window is dropped in part."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
from django.db import connection

from controlplane.access.roles import Actor
from controlplane.connections import redis_client
from controlplane.errors import Away, Conflict, Invalid
from controlplane.models import AuditEntry, Cluster, Drop, Stream
from controlplane.telemetry.samples import moment_of
from controlplane.topology import drop_rules, placement, queries
from controlplane.topology.drop_rules import DropSpec
from controlplane.topology.rows import current_table
from controlplane.wire.routing.drop_rules import ALWAYS, INPUT, DropRule
from controlplane.wire.routing.publication import latest_version, read_table
from tests.support.cluster import placed, replayed_table
from tests.support.records import append_at
from tests.support.series import add_sample

pytestmark = pytest.mark.django_db(transaction=True)
MINUTE = 60_000
NOON = 1_000_000 * MINUTE
# Event time that may pass until a decision takes effect: ten seconds.
LEAD = 10_000


@pytest.fixture
def stream(operator: Actor, sf: Cluster) -> Stream:
    """A stream that the running query q reads, in windows of a minute."""
    placed(operator, sf, {"q": ["s0", "s1"]})
    return sf.streams.get(name="s0")


def published(cluster: Cluster) -> dict[tuple[int, int], DropRule]:
    """Return what edges drop as the pipeline is told, which the rows lead to as well."""
    version = latest_version(redis_client(), cluster.slug)
    assert version is not None
    table = read_table(redis_client(), cluster.slug, version)
    assert table == current_table(cluster.pk) == replayed_table(cluster)
    return dict(table.drop_rules)


def test_a_random_drop_holds_at_once(operator: Actor, sf: Cluster, stream: Stream) -> None:
    drop = drop_rules.set_drop(operator, stream, DropSpec(0.3), reason="too much")
    assert published(sf) == {(stream.pk, INPUT): DropRule.of(0.3)}
    sf.refresh_from_db()
    assert (drop.since_version, drop.set_by) == (sf.routing_version, operator.name)
    entry = AuditEntry.objects.get(action="drop.set")
    assert (entry.object, entry.reason) == ("s0", "too much")
    drop_rules.set_drop(operator, stream, DropSpec(0.6))
    assert published(sf) == {(stream.pk, INPUT): DropRule.of(0.6)}
    assert Drop.objects.count() == 1
    assert drop_rules.lift(operator, stream) is None
    assert published(sf) == {}
    assert not Drop.objects.exists()


def test_arcs_of_one_stream_drop_by_themselves(
    operator: Actor, sf: Cluster, stream: Stream
) -> None:
    """With a luck of their own: what the input edge lets through is drawn from anew."""
    drop_rules.set_drop(operator, stream, DropSpec(0.5))
    drop = drop_rules.set_drop(operator, stream, DropSpec(0.5), "q")
    assert drop.query is not None
    found = published(sf)
    assert set(found) == {(stream.pk, INPUT), (stream.pk, drop.query.pk)}
    assert len({rule.seed for rule in found.values()}) == 2
    drop_rules.lift(operator, stream, "q")
    assert set(published(sf)) == {(stream.pk, INPUT)}


def test_windows_are_dropped_from_one_on_that_is_to_come(
    operator: Actor, sf: Cluster, stream: Stream
) -> None:
    append_at(sf, stream.pk, NOON + 1)
    drop = drop_rules.set_drop(operator, stream, DropSpec(0.5, window_s=60), "q")
    (since,) = drop.value.steps
    assert since == (NOON + MINUTE, 0.5)
    assert (drop.value.window_ms, drop.value.slide_ms, drop.value.batch) == (MINUTE, MINUTE, 1)
    append_at(sf, stream.pk, NOON + 3 * MINUTE)
    changed = drop_rules.set_drop(operator, stream, DropSpec(0.8, window_s=60), "q")
    assert changed.value.steps == ((NOON + MINUTE, 0.5), (NOON + 4 * MINUTE, 0.8))
    append_at(sf, stream.pk, NOON + 5 * MINUTE - LEAD)
    lifted = drop_rules.lift(operator, stream, "q")
    assert lifted is not None
    assert lifted.value.steps[2:] == ((NOON + 6 * MINUTE, 0.0),)
    assert drop_rules.lift(operator, stream, "q") == lifted, "once more is not a change"
    assert published(sf) == {lifted.edge: lifted.value}
    told = list(AuditEntry.objects.filter(action__startswith="drop").values_list("action"))
    assert sorted(told) == [("drop.lift",), ("drop.set",), ("drop.set",)]


def test_neighbours_that_go_together_begin_together(operator: Actor, stream: Stream) -> None:
    append_at(stream.cluster, stream.pk, NOON)
    spec = DropSpec(0.5, window_s=60, slide_s=20, batch=7)
    ((since, _),) = drop_rules.set_drop(operator, stream, spec).value.steps
    assert since % (7 * 20_000) == 0
    assert NOON + LEAD < since <= NOON + LEAD + 7 * 20_000


def test_a_stream_without_a_record_begins_at_once(operator: Actor, stream: Stream) -> None:
    drop = drop_rules.set_drop(operator, stream, DropSpec(1.0, window_s=60))
    assert drop.value.steps == ((ALWAYS, 1.0),)
    assert drop_rules.lift(operator, stream) is None, "no window has met it"


def test_a_replay_that_runs_fast_is_given_more_time(
    operator: Actor, sf: Cluster, stream: Stream
) -> None:
    """Sixty times real time: ten minutes pass until the decision is there."""
    from tests.dashboard.conftest import add_samples  # noqa: PLC0415

    values = add_samples(sf)
    for sample in values:
        event_ms = NOON + 60 * (sample["t"] - values[0]["t"])
        add_sample(sf, moment_of(sample["t"]), sample | {"event_ms": event_ms})
    append_at(sf, stream.pk, NOON)
    ((since, _),) = drop_rules.set_drop(operator, stream, DropSpec(1.0, window_s=60)).value.steps
    assert since == NOON + 11 * MINUTE


def test_other_windows_need_a_lift_first(operator: Actor, sf: Cluster, stream: Stream) -> None:
    append_at(sf, stream.pk, NOON)
    drop_rules.set_drop(operator, stream, DropSpec(0.5, window_s=60))
    for spec in (DropSpec(0.5), DropSpec(0.5, window_s=30), DropSpec(0.5, window_s=60, batch=2)):
        with pytest.raises(Invalid) as refusal:
            drop_rules.set_drop(operator, stream, spec)
        assert "lift that first" in refusal.value.fields["window_s"][0]


def test_records_may_give_way_to_windows(operator: Actor, sf: Cluster, stream: Stream) -> None:
    append_at(sf, stream.pk, NOON)
    drop_rules.set_drop(operator, stream, DropSpec(0.5))
    drop = drop_rules.set_drop(operator, stream, DropSpec(0.5, window_s=60))
    assert drop.value.steps == ((NOON + MINUTE, 0.5),)


def test_a_split_edge_drops_the_windows_of_its_query(
    operator: Actor, sf: Cluster, stream: Stream
) -> None:
    """Of others only records would go, and its results would be halves."""
    with pytest.raises(Invalid) as refusal:
        drop_rules.set_drop(operator, stream, DropSpec(0.5, window_s=30), "q")
    assert refusal.value.fields["window_s"] == ["The windows of q are 60 s every 60 s"]


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        (DropSpec(0.0), "share"),
        (DropSpec(1.1), "share"),
        (DropSpec(float("nan")), "share"),
        (DropSpec(0.5, window_s=0), "window_s"),
        (DropSpec(0.5, window_s=0.0005), "window_s"),
        (DropSpec(0.5, window_s=float("inf")), "window_s"),
        (DropSpec(0.5, slide_s=5), "slide_s"),
        (DropSpec(0.5, window_s=5, slide_s=6), "slide_s"),
        (DropSpec(0.5, window_s=5, slide_s=-1), "slide_s"),
        (DropSpec(0.5, batch=2), "batch"),
        (DropSpec(0.5, window_s=5, batch=0), "batch"),
        (DropSpec(0.5, window_s=5, batch=10**6), "batch"),
    ],
)
def test_what_makes_no_sense_is_told_by_field(
    operator: Actor, sf: Cluster, stream: Stream, spec: DropSpec, field: str
) -> None:
    with pytest.raises(Invalid) as refusal:
        drop_rules.set_drop(operator, stream, spec)
    assert list(refusal.value.fields) == [field]
    assert published(sf) == {}


def test_the_edge_must_be_there(operator: Actor, sf: Cluster, stream: Stream) -> None:
    other = sf.streams.get(name="s5")
    for at, query in ((other, "q"), (stream, "ghost")):
        with pytest.raises(Invalid) as refusal:
            drop_rules.set_drop(operator, at, DropSpec(0.5), query)
        assert "No running query" in refusal.value.fields["query"][0]
    with pytest.raises(Invalid) as refusal:
        drop_rules.lift(operator, stream)
    assert refusal.value.fields == {"stream": ["Nothing is dropped there"]}
    with pytest.raises(Invalid) as refusal:
        drop_rules.lift(operator, stream, "q")
    assert "query" in refusal.value.fields


def test_what_a_query_drops_ends_with_it(operator: Actor, sf: Cluster, stream: Stream) -> None:
    drop_rules.set_drop(operator, stream, DropSpec(0.5))
    drop_rules.set_drop(operator, stream, DropSpec(0.5), "q")
    queries.end(operator, sf, ["q"])
    placement.place_pending(sf.pk)
    assert set(published(sf)) == {(stream.pk, INPUT)}
    assert Drop.objects.get().query is None


def test_changes_that_cannot_be_forgotten_are_bounded(
    operator: Actor, sf: Cluster, stream: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drop_rules, "MAX_STEPS", 3)
    for at in range(3):
        append_at(sf, stream.pk, NOON + at * MINUTE)
        drop_rules.set_drop(operator, stream, DropSpec((at + 1) / 8, window_s=60))
    append_at(sf, stream.pk, NOON + 9 * MINUTE)
    with pytest.raises(Conflict) as refusal:
        drop_rules.set_drop(operator, stream, DropSpec(0.9, window_s=60))
    assert refusal.value.code == "too_many_steps"
    assert Drop.objects.get().value.steps[-1][1] == 3 / 8


def test_of_changes_at_the_same_time_each_is_a_version(
    operator: Actor, sf: Cluster, stream: Stream
) -> None:
    """Who loses the race for a version reads again; an edge has one drop all the same."""
    sf.refresh_from_db()
    before, barrier = sf.routing_version, Barrier(4)

    def change(share: float) -> None:
        barrier.wait(10)
        try:
            drop_rules.set_drop(operator, stream, DropSpec(share))
        finally:
            connection.close()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(change, (0.1, 0.2, 0.3, 0.4)))
    sf.refresh_from_db()
    assert sf.routing_version == before + 4
    assert len(published(sf)) == Drop.objects.count() == 1


def test_without_the_log_only_records_are_dropped(
    operator: Actor, sf: Cluster, stream: Stream
) -> None:
    """Nobody knows then which window has no record yet."""
    Cluster.objects.update(log_url="redis://127.0.0.1:1/0")
    with pytest.raises(Away) as refusal:
        drop_rules.set_drop(operator, stream, DropSpec(0.5, window_s=60))
    assert refusal.value.code == "log_away"
    assert not Drop.objects.exists()
    drop_rules.set_drop(operator, stream, DropSpec(0.5))
    assert len(published(sf)) == 1
