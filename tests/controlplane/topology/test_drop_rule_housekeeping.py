"""What drops lose is counted once; steps that no window needs are forgotten, and no others."""

import pytest
from django.utils import timezone

from controlplane.access.roles import ADMIN, Actor
from controlplane.background import ingestion, reconcile
from controlplane.clusters.changes import set_log
from controlplane.errors import Away
from controlplane.models import Cluster, Drop, Stream
from controlplane.topology import drop_rule_housekeeping, drop_rules
from controlplane.topology.drop_rules import DropSpec
from controlplane.topology.rows import current_table
from controlplane.wire.query_text import QueryText
from tests.support.cluster import actor, placed, replayed_table, telemetry
from tests.support.kafka import running_kafka
from tests.support.records import append_at

pytestmark = pytest.mark.django_db(transaction=True)
MINUTE = 60_000
NOON = 1_000_000 * MINUTE
LATENESS = round(QueryText.lateness_s * 1000)
# A window of a minute is over for good once the newest record is that much behind its begin.
OVER = MINUTE + LATENESS


@pytest.fixture
def stream(operator: Actor, sf: Cluster) -> Stream:
    """A stream that a running query reads, in windows of a minute."""
    placed(operator, sf, {"q": ["s0"]})
    return sf.streams.get(name="s0")


@pytest.fixture
def lifted(operator: Actor, sf: Cluster, stream: Stream) -> Drop:
    """A drop of minutes from one on, and of none from another on."""
    append_at(sf, stream.pk, NOON)
    drop_rules.set_drop(operator, stream, DropSpec(0.5, window_s=60))
    append_at(sf, stream.pk, NOON + 5 * MINUTE)
    drop = drop_rules.lift(operator, stream)
    assert drop is not None
    assert drop.value.steps[-1] == (NOON + 6 * MINUTE, 0.0)
    return drop


def emitted(cluster: Cluster, end: str, waiting: int = 0, batch: int = 1) -> None:
    """Let the pipeline tell of a batch up to a position."""
    now = round(timezone.now().timestamp() * 1000) + batch
    ingestion.record(cluster, [telemetry(batch, now, read_position=end, waiting=waiting)])


def test_a_drop_is_lifted_once_its_last_window_is_over(
    operator: Actor, sf: Cluster, stream: Stream, lifted: Drop
) -> None:
    """Late records may come for it until then, and must find it dropped."""
    before = append_at(sf, stream.pk, NOON + 6 * MINUTE + OVER - 1)
    emitted(sf, before)
    for _ in range(2):
        assert drop_rule_housekeeping.settle(sf) == 0
    assert Drop.objects.get().settles is None
    end = append_at(sf, stream.pk, NOON + 6 * MINUTE + OVER)
    assert drop_rule_housekeeping.settle(sf) == 0, (
        "what was appended before may still be on its way"
    )
    assert Drop.objects.get().settles == {"since": NOON + 6 * MINUTE, "position": end}
    assert drop_rule_housekeeping.settle(sf) == 0
    emitted(sf, end, waiting=3, batch=2)
    assert drop_rule_housekeeping.settle(sf) == 0, "records wait at a node"
    emitted(sf, end, batch=3)
    reconcile.reconcile_cluster(sf, timezone.now())
    assert not Drop.objects.exists()
    assert current_table(sf.pk) == replayed_table(sf)
    assert current_table(sf.pk).drop_rules == {}


def test_only_steps_of_the_past_are_forgotten(
    operator: Actor, sf: Cluster, stream: Stream, lifted: Drop
) -> None:
    end = append_at(sf, stream.pk, NOON + 6 * MINUTE + OVER)
    drop_rules.set_drop(operator, stream, DropSpec(0.75, window_s=60))
    assert len(Drop.objects.get().value.steps) == 3
    drop_rule_housekeeping.settle(sf)
    emitted(sf, end)
    assert drop_rule_housekeeping.settle(sf) == 1
    ((since, share),) = Drop.objects.get().value.steps
    assert (share, since > NOON + 6 * MINUTE) == (0.75, True)
    assert current_table(sf.pk) == replayed_table(sf)
    drop_rule_housekeeping.settle(sf)
    assert Drop.objects.get().settles is None, "one step is all there is"


def test_a_change_in_between_is_looked_at_anew(
    operator: Actor, sf: Cluster, stream: Stream, lifted: Drop
) -> None:
    append_at(sf, stream.pk, NOON + 6 * MINUTE + OVER)
    drop_rule_housekeeping.settle(sf)
    assert Drop.objects.get().settles is not None
    drop_rules.set_drop(operator, stream, DropSpec(0.25, window_s=60))
    assert Drop.objects.get().settles is None


def test_a_place_in_another_log_says_nothing(operator: Actor, sf: Cluster, lifted: Drop) -> None:
    append_at(sf, lifted.stream_id, NOON + 6 * MINUTE + OVER)
    drop_rule_housekeeping.settle(sf)
    assert Drop.objects.get().settles is not None
    with running_kafka() as address:
        set_log(actor(ADMIN), sf, f"kafka://{address}/elsewhere", 512)
    assert Drop.objects.get().settles is None


def test_a_log_that_is_away_is_told_and_changes_nothing(sf: Cluster, lifted: Drop) -> None:
    Cluster.objects.update(log_url="redis://127.0.0.1:1/0")
    sf.refresh_from_db()
    with pytest.raises(Away):
        drop_rule_housekeeping.settle(sf)
    assert Drop.objects.get().value == lifted.value


def test_what_arcs_lose_is_counted(operator: Actor, sf: Cluster, stream: Stream) -> None:
    """By edge; the rate follows, and goes back to nothing."""
    whole = drop_rules.set_drop(operator, stream, DropSpec(0.5))
    split = drop_rules.set_drop(operator, stream, DropSpec(0.5), "q")
    assert split.query is not None
    lost = {str(stream.pk): 40, f"{stream.pk}>{split.query.pk}": 7, "999": 1}
    read = {str(stream.pk): 100}
    rows = [telemetry(at, at * 1000, dropped=lost, streams=read) for at in range(1, 61)]
    samples = ingestion.record(sf, rows)
    assert samples[-1]["dropped"] == pytest.approx(40.0), "a record counts once"
    whole.refresh_from_db()
    split.refresh_from_db()
    assert (whole.dropped, split.dropped) == (2400, 420)
    assert whole.per_s == pytest.approx(40.0, rel=0.01)
    ingestion.record(sf, [telemetry(61, 61_000), telemetry(62, 300_000)])
    whole.refresh_from_db()
    assert (whole.dropped, whole.per_s) == (2400, 0.0)


def test_a_drop_that_is_set_anew_counts_anew(operator: Actor, sf: Cluster, stream: Stream) -> None:
    """A change goes on counting; counting does not undo a change."""
    drop_rules.set_drop(operator, stream, DropSpec(0.5))
    ingestion.record(sf, [telemetry(1, 1000, dropped={str(stream.pk): 5})])
    drop = drop_rules.set_drop(operator, stream, DropSpec(0.9))
    drop.refresh_from_db()
    assert (drop.dropped, drop.value.steps[0][1]) == (5, 0.9)
    drop_rules.lift(operator, stream)
    drop_rules.set_drop(operator, stream, DropSpec(0.5))
    assert Drop.objects.get().dropped == 0
