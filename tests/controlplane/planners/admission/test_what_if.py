"""What-if, the outlook of a stream, and the fit of forecasters."""

from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from algorithms.admission.metadata import StreamMetadata
from controlplane.access.roles import Actor
from controlplane.errors import Conflict, Invalid
from controlplane.models import Cluster, Stream
from controlplane.planners.admission.fitting import chosen, fit_forecasters
from controlplane.planners.admission.outlook import HORIZON, outlook_of
from controlplane.planners.admission.split_nodes import split_node_table
from controlplane.planners.admission.what_if import admit
from controlplane.telemetry import arrivals, series
from controlplane.topology.split_nodes import set_split_capacity
from tests.support.admission import arrived, telemetry
from tests.support.series import add_sample

pytestmark = pytest.mark.django_db


def test_a_new_stream_goes_where_it_fits_best(loaded: Cluster) -> None:
    small = admit(loaded, StreamMetadata(rate=15.0, peak=15.0))
    assert (small.split, small.opened, small.load, small.capacity) == (0, False, 95.0, 100.0)
    middle = admit(loaded, StreamMetadata(rate=40.0, peak=45.0))
    assert (middle.split, middle.opened, middle.load) == (1, False, 95.0)
    large = admit(loaded, StreamMetadata(rate=90.0, peak=99.0))
    assert (large.split, large.opened, large.load) == (2, True, 99.0)


def test_the_other_split_nodes_are_replayed_too(loaded: Cluster) -> None:
    result = admit(loaded, StreamMetadata(rate=15.0, peak=15.0))
    assert [other.split for other in result.others] == [1]


def test_split_nodes_have_measured_and_expected_loads(loaded: Cluster, now: datetime) -> None:
    measured = {"split_loads": [70.0], "split_utilisation": [0.7], "split_waiting": [3]}
    add_sample(loaded, now, measured)
    first, second = split_node_table(loaded)
    assert (first.index, first.streams, first.capacity) == (0, 1, 100.0)
    assert (first.load, first.utilisation, first.waiting, first.latency_ms) == (70.0, 0.7, 3, None)
    assert (first.expected, first.share, first.free) == (80.0, 0.8, 20.0)
    assert (second.streams, second.load) == (loaded.streams.count() - 1, None)
    assert second.expected == 50.0


def test_an_outlook_names_the_overload_of_the_split_node(loaded: Cluster, now: datetime) -> None:
    """The others of split node 1 take 40 of its 100 records/s; this one rises by three a period."""
    rising = {"s1": [float(3 * k) for k in range(1, 19)]}
    steady = {f"s{i}": [10.0] * 18 for i in range(2, 6)}
    arrived(loaded, now + timedelta(seconds=400), rising | steady)
    outlook = outlook_of(loaded.streams.get(name="s1"))
    assert outlook is not None
    assert outlook.left is not None
    assert outlook.left == pytest.approx([60.0] * HORIZON, abs=15)
    assert outlook.overload_at is not None
    over = [rate > left for rate, left in zip(outlook.expected, outlook.left, strict=True)]
    assert outlook.overload_at == outlook.next_starts[over.index(True)]


def test_what_no_split_node_can_read_is_refused(loaded: Cluster) -> None:
    with pytest.raises(Invalid) as bad:
        admit(loaded, StreamMetadata(rate=40.0, peak=140.0))
    assert "characteristics" in bad.value.fields


def test_without_a_capacity_there_is_no_answer(sf: Cluster) -> None:
    with pytest.raises(Conflict) as refusal:
        admit(sf, StreamMetadata(rate=1.0))
    assert refusal.value.code == "no_capacity"


def test_past_rates_are_replayed_by_hour(operator: Actor, sf: Cluster) -> None:
    """The only stream has 90 records/s from three to four, and 10 otherwise."""
    set_split_capacity(operator, sf, 100.0, emulated=False)
    Stream.objects.filter(cluster=sf).update(split=0)
    stream = sf.streams.get(name="s0")
    start = datetime(2026, 3, 1, 0, 0, tzinfo=UTC)
    arrivals.count(sf, [telemetry(start, {})])
    for step in range(1, 6 * 60 // 5 + 1):
        end = start + timedelta(minutes=5 * step)
        rate = 90 if (end - timedelta(seconds=1)).hour == 3 else 10
        arrivals.count(sf, [telemetry(end, {stream.pk: 300 * rate})])
        series.roll_up(end)
    series.roll_up(start + timedelta(hours=6, minutes=2))
    result = admit(sf, StreamMetadata(rate=20.0, peak=20.0), start + timedelta(hours=6))
    assert result.split == 0
    least = {row.hour: row.least for row in result.chosen.headroom}
    assert (least[2], least[3], least[4]) == (70.0, -10.0, 70.0)
    assert result.chosen.first_overload == datetime(2026, 3, 2, 3, 0, tzinfo=UTC)
    assert result.chosen.probability == pytest.approx(1 / 6, abs=0.01)


def test_an_outlook_has_an_interval_around_the_forecast(loaded: Cluster) -> None:
    outlook = outlook_of(loaded.streams.get(name="s0"))
    assert outlook is not None
    assert (len(outlook.forecast), len(outlook.next_starts)) == (HORIZON, HORIZON)
    assert outlook.forecast[0] == 80.0
    assert outlook.next_starts[0] - outlook.starts[-1] == timedelta(seconds=outlook.seconds)
    for low, rate, high in zip(outlook.low, outlook.forecast, outlook.high, strict=True):
        assert low <= rate <= high


def test_a_stream_without_records_has_no_outlook(sf: Cluster) -> None:
    assert outlook_of(sf.streams.get(name="s0")) is None


def test_forecasters_are_chosen_and_kept_for_a_while(loaded: Cluster, now: datetime) -> None:
    Cluster.objects.filter(pk=loaded.pk).update(desired="running")
    rising = [float(rate) for rate in range(1, 61)]
    arrived(loaded, now + timedelta(seconds=700), {"s1": rising, "s0": [80.0] * 60})
    assert fit_forecasters(now) >= 1
    assert Stream.objects.get(cluster=loaded, name="s1").forecaster["method"] == "holt"
    assert fit_forecasters(now + timedelta(minutes=1)) == 0


def test_a_repeating_stream_has_the_seasonal_method() -> None:
    season = np.array([10.0, 50.0, 20.0, 90.0, 15.0, 40.0])
    choice = chosen(np.tile(season, 20), period_s=60.0)
    assert (choice.method, choice.season) == ("seasonal", 6)
    assert choice.error == pytest.approx(0.0, abs=1e-6)
    assert chosen(np.full(60, 5.0), None).error == 0.0
