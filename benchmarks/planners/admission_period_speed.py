"""How long one period of admission takes for a cluster, from its rows to the planned actions.

    python -m benchmarks.planners.admission_period_speed [--streams 10000] [--nodes 200]
        [--periods 72] [--repeats 5]

A cluster on a fresh database, with past rates of all streams in periods of ten seconds, and with
declared characteristics for half of them. Measured are reading the input, and the whole plan as the
loop of admission computes it every ten seconds, with forecasts and default settings.
"""

import argparse
import time
from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Final

import numpy as np

from benchmarks.control_plane import figures, fresh_weir

MEAN_RATE: Final = 20.0


def main() -> None:
    options = parse_options()
    with fresh_weir():
        cluster = fill(options.streams, options.nodes, options.periods)
        _measure(cluster, options.repeats)


def fill(streams: int, nodes: int, periods: int) -> Any:
    """Create the cluster, and return it; split nodes are three quarters full."""
    from django.utils import timezone  # noqa: PLC0415 - needs Django

    from controlplane.models import Cluster, Stream  # noqa: PLC0415
    from controlplane.telemetry import series  # noqa: PLC0415
    from controlplane.telemetry.arrivals import PERIOD_S, period_of  # noqa: PLC0415
    from controlplane.telemetry.series import start_of  # noqa: PLC0415

    draw = np.random.default_rng(1)
    capacity = streams / nodes * MEAN_RATE / 0.75
    cluster = Cluster.objects.create(
        slug="large", name="large", splits=nodes, split_capacity=capacity
    )
    means = draw.uniform(0.5, 1.5, streams) * MEAN_RATE
    known = [
        {"average": mean, "maximum": 2 * mean, "period_s": 3_600.0, "minimum": 0.0} if i % 2 else {}
        for i, mean in enumerate(means.tolist())
    ]
    Stream.objects.bulk_create(
        (
            Stream(cluster=cluster, name=f"s{i}", split=i % nodes, characteristics=known[i])
            for i in range(streams)
        ),
        batch_size=2_000,
    )
    ids = np.array(sorted(cluster.streams.values_list("id", flat=True)), np.int64)
    end = start_of(timezone.now(), PERIOD_S)
    length, unread = timedelta(seconds=PERIOD_S), np.zeros(streams)
    counts = draw.poisson(means * PERIOD_S, (periods, streams)).astype(np.float64)
    starts = [end - length * (periods - k) for k in range(periods)]
    rows = (period_of(t, ids, row, unread) for t, row in zip(starts, counts, strict=True))
    series.record(cluster, rows)
    return cluster


def _measure(cluster: Any, repeats: int) -> None:
    from controlplane.planners.admission.observation import read_input  # noqa: PLC0415
    from controlplane.planners.admission.redirections import plan_redirections  # noqa: PLC0415
    from controlplane.policies.store import policy_of  # noqa: PLC0415

    policy = policy_of(cluster)
    planned = plan_redirections(cluster, policy)
    read, whole = [], []
    for _ in range(repeats):
        started = time.perf_counter()
        read_input(cluster)
        read.append(time.perf_counter() - started)
        started = time.perf_counter()
        plan_redirections(cluster, policy)
        whole.append(time.perf_counter() - started)
    print(f"{cluster.streams.count():,} streams, {len(planned.moves):,} redirected")
    print(f"  reading the input:  {figures(read)}")
    print(f"  the whole plan:     {figures(whole)}")


def parse_options(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Return the options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--streams", type=int, default=10_000)
    parser.add_argument("--nodes", type=int, default=200)
    parser.add_argument("--periods", type=int, default=72)
    parser.add_argument("--repeats", type=int, default=5)
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
