"""The histories of figures 5 and 6: who comes and goes when, and what is measured."""

import numpy as np
import pytest

from algorithms.errors import BadParameters
from algorithms.lab.placement.experiments.departures import Churning, Departing
from algorithms.lab.placement.workloads.events import Events, Happening, History
from tests.algorithms.placement.instances import chain


def departing(**more: float) -> Departing:
    return Departing.from_mapping({"steps": 2_000, "lifetime": 300.0, "servers": 5} | more)


def churning(**more: float) -> Churning:
    return Churning.from_mapping({**departing().to_mapping(), "churn_every": 50} | more)


def test_the_graph_is_over_all_arrivals() -> None:
    """Each query of the problem arrives exactly once, in order of its number."""
    history = departing().history(seed=1)
    arrived = history.events.subjects[history.events.kinds == Happening.ARRIVAL]
    assert arrived.tolist() == list(range(history.problem.queries))
    assert history.problem.queries == pytest.approx(2_000, rel=0.1)
    assert history.problem.servers == 5


def test_churn_leaves_the_queries_as_they_are() -> None:
    """Figure 6 is figure 5 with server events in between."""
    plain, churned = departing().history(2), churning().history(2)
    events = churned.events
    of_queries = np.isin(events.kinds, (Happening.ARRIVAL, Happening.DEPARTURE))
    assert churned.problem.indices.tolist() == plain.problem.indices.tolist()
    assert events.subjects[of_queries].tolist() == plain.events.subjects.tolist()
    assert events.times[~of_queries].tolist() == list(range(51, 2_001, 50))
    added = events.subjects[events.kinds == Happening.SERVER_ADDED]
    assert added.max() + 1 > 5


def test_pareto_lifetimes_can_be_had_instead() -> None:
    """Section 6.3.2 tried both families. Heavy tails: fewer leave within a run as long."""
    light = departing().history(1).events.live()[-1]
    heavy = departing(lifetime_shape=1.5).history(1).events.live()[-1]
    assert light == pytest.approx(300, rel=0.25)
    assert heavy != light


def test_a_shape_without_a_mean_lifetime_is_refused() -> None:
    """At once, not when the run has come that far."""
    with pytest.raises(BadParameters) as caught:
        departing(lifetime_shape=0.8)
    assert list(caught.value.fields) == ["lifetime_shape"]


def test_the_measured_span_is_sampled_evenly_and_to_its_end() -> None:
    """Events at 1, 2, ..., 10; the second half is sampled at 6.25, 7.5, 8.75 and 10."""
    arrivals = np.full(10, Happening.ARRIVAL, np.int8)
    events = Events(arrivals, np.arange(10, dtype=np.int32), np.arange(1.0, 11.0))
    history = History(chain(), events, since=5.0, until=10.0)
    assert history.positions(4).tolist() == [6, 7, 8, 10]


def test_the_same_seed_gives_the_same_history() -> None:
    """Another seed gives another one."""
    one, same, other = (churning().history(seed) for seed in (3, 3, 4))
    assert one.events.times.tolist() == same.events.times.tolist()
    assert one.events.subjects.tolist() == same.events.subjects.tolist()
    assert one.events.times.tolist() != other.events.times.tolist()
