"""Figures 5 and 6 on small histories: every row there, and figures checked in plain Python."""

import itertools

import numpy as np
import pytest

from algorithms.lab.experiments import experiment
from algorithms.lab.placement.experiments.departures import CHURN, DEPARTURES, Churning, Departing
from algorithms.lab.placement.experiments.trials import Course, history_measures
from algorithms.lab.placement.experiments.trips import LiveTrips
from tests.algorithms.lab.placement.experiments.plain import plain_course

SMALL: dict[str, float] = {
    "steps": 500,
    "lifetime": 80.0,
    "servers": 4,
    "alpha": 3.0,
    "seeds": 2,
    "samples": 5,
}
VALUES: dict[str, list[float]] = {
    "exponent": [1.0, 3.0],
    "sources_per_query": [1, 3],
    "servers": [1, 6],
    "lifetime": [5.0, 1_000.0],
    "churn_every": [20, 100],
}


@pytest.mark.parametrize("name", [one.name for one in (*DEPARTURES, *CHURN)])
def test_every_value_series_and_seed_has_its_row(name: str) -> None:
    """Replication factors lie between 1 and the number of servers; the fullest has the mean."""
    one = experiment("placement", name)
    values = VALUES[one.x.name]
    table = one.run(one.parameters.from_mapping(SMALL), values)
    rows = [(row[one.x.name], row["seed"], row["series"]) for row in table.records()]
    assert set(rows) == set(itertools.product(values, range(2), one.series))
    assert len(rows) == len(values) * 2 * len(one.series)
    factors = np.array(table.column("replication_factor"), np.float64)
    skews = np.array(table.column("imbalance"), np.float64)
    assert (factors >= 1).all()
    assert (factors <= 30).all()
    assert (skews >= 0).all()


@pytest.mark.parametrize("name", ["fig5a", "fig6a"])
def test_figures_agree_with_a_replay_in_plain_python(name: str) -> None:
    """The same decisions, and every figure counted anew from who lives where."""
    one = experiment("placement", name)
    parameters = one.parameters.from_mapping(SMALL | {"exponent": 1.5})
    assert isinstance(parameters, Departing)
    row = one.run(parameters, [1.5], ["least_cost"]).records()[1]
    factors, cluster = plain_course(parameters.history(1), "0.05", 3, 5)
    known = [factor for factor in factors if factor is not None]
    assert row["replication_factor"] == pytest.approx(sum(known) / len(known))
    assert row["replication_factor_end"] == pytest.approx(factors[-1])
    assert row["moved"] == cluster.moved


def test_churn_moves_queries_and_departures_alone_do_not() -> None:
    """Queries of a removed server are placed again, and only those."""
    settings = SMALL | {"churn_every": 20}
    calm = experiment("placement", "fig5a").run(Departing.from_mapping(SMALL), [2.0])
    churning = experiment("placement", "fig6a").run(Churning.from_mapping(settings), [2.0])
    assert set(calm.column("moved")) == {0}
    assert min(np.array(churning.column("moved"), np.int64)) > 0


def test_cancelling_reaches_into_a_replay() -> None:
    """A single point and series: only the replay itself can be heard."""
    heard: list[float] = []

    def cancel(share: float) -> None:
        heard.append(share)
        if share > 0.2:
            raise KeyboardInterrupt

    parameters = Departing.from_mapping(SMALL | {"seeds": 1})
    with pytest.raises(KeyboardInterrupt):
        experiment("placement", "fig5a").run(parameters, [2.0], ["least_cost"], cancel)
    assert heard[-1] < 0.3


def test_moments_without_queries_do_not_count() -> None:
    """Samples of traffic 0, 6 and 4 over live rates 0, 3 and 4, on two servers."""
    course = Course(
        traffic=np.array([0.0, 6.0, 4.0]),
        live=np.array([0, 5, 4]),
        largest=np.array([0, 4, 2]),
        servers=np.array([2, 2, 2]),
        moved=7,
        seconds=0.5,
    )
    found = history_measures(course, np.array([0.0, 3.0, 4.0]))
    assert found["replication_factor"] == 1.5
    assert found["replication_factor_end"] == 1.0
    assert found["live"] == 3.0
    assert found["max_load"] == 4
    assert found["imbalance"] == pytest.approx((0.6 + 0.0) / 2)
    assert history_measures(course, np.array([0.0, 3.0, 0.0]))["replication_factor_end"] is None
    assert history_measures(course, np.zeros(3))["replication_factor"] is None


def test_live_trips_are_measured_over_the_week() -> None:
    """The mean number of live trips follows from their lifetimes, by Little's law."""
    history = LiveTrips().history(0)
    live = history.events.live()[history.positions(1_000) - 1]
    weeks_minutes = 7 * 24 * 60
    assert live.mean() == pytest.approx(136_694 * 11.4 / weeks_minutes, rel=0.05)
