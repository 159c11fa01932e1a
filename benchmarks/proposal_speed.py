"""How long a placement proposal takes on a large cluster, from the request to its effects.

    python -m benchmarks.proposal_speed [--queries 100000] [--nodes 100] [--repeats 3] [--postgres]

A cluster of unequal nodes (capacities of 500, 1,000 and 2,000 records/s by turns) with so many
running queries, as `execution_speed` fills it. The proposal is requested and computed by the
services in this process, as the Celery worker computes it, with the default algorithm (MMS) and
the cluster's default slack; then the effects of all its moves are computed. The first proposal is
computed without being measured: it compiles or loads the planner's code. Processor time is that of
this process, without the database server, for machines that do other work, too.
"""

import argparse
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, Final

from benchmarks.control_plane import figures, fresh_weir
from benchmarks.execution_speed import NODES, STREAMS, fill

CAPACITIES: Final = (500.0, 1_000.0, 2_000.0)
# Stages in the order in which they are printed.
STAGES: Final = (
    "snapshot, read",
    "snapshot, written",
    "planner",
    "resolution",
    "ordering",
    "measures",
    "effects",
    "rest (rows, price, seal)",
    "whole",
    "processor time",
)


def main() -> None:
    options = parse_options()
    with fresh_weir(postgres=options.postgres):
        actor, cluster = _create_cluster(options.queries, options.streams, options.nodes)
        _compute_proposal(actor, cluster, lambda _: None)
        taken: dict[str, list[float]] = {stage: [] for stage in STAGES}
        for _ in range(options.repeats):
            _forget_snapshots()
            proposal, seconds = _measure_proposal(actor, cluster, options.limit)
            for stage, value in seconds.items():
                taken[stage].append(value)
        _print_plan(proposal)
        for stage, values in taken.items():
            print(f"{stage:25} {figures(values)}")


def _create_cluster(queries: int, streams: int, nodes: int) -> tuple[Any, Any]:
    """Create an admin and a filled cluster of unequal nodes, and return both."""
    from django.contrib.auth.models import User  # noqa: PLC0415

    from controlplane.access.roles import Actor  # noqa: PLC0415

    cluster = fill(queries, streams, nodes)
    for node in cluster.nodes.all():
        node.capacity = CAPACITIES[node.index % len(CAPACITIES)]
        node.save(update_fields=["capacity"])
    return Actor(User.objects.create_superuser("bench")), cluster


def _forget_snapshots() -> None:
    """Delete proposals and snapshots: an equal snapshot would be found and not written again."""
    from controlplane.models import Proposal, Snapshot  # noqa: PLC0415

    Proposal.objects.all().delete()
    Snapshot.objects.all().delete()


def _compute_proposal(actor: Any, cluster: Any, on_ready: Callable[[Any], None]) -> Any:
    """Request a proposal, compute it, call `on_ready` with it and return it."""
    from controlplane.proposals import computation, requests  # noqa: PLC0415

    proposal = requests.request(actor, cluster)
    computation.compute(proposal.pk)
    proposal.refresh_from_db()
    assert proposal.state == "ready", proposal.error
    on_ready(proposal)
    return proposal


def _measure_proposal(actor: Any, cluster: Any, limit: int) -> tuple[Any, dict[str, float]]:
    """Return a proposal and the seconds of each stage."""
    from controlplane.planning import effects  # noqa: PLC0415

    def compute_effects(proposal: Any) -> None:
        places = range(min(limit, len(proposal.actions)))
        effects.effects(proposal.snapshot, list(proposal.plan), places)

    with _stopwatches() as seconds:
        started, processor = time.perf_counter(), time.process_time()
        proposal = _compute_proposal(actor, cluster, compute_effects)
        whole, processor = time.perf_counter() - started, time.process_time() - processor
    return proposal, seconds | {
        "rest (rows, price, seal)": whole - sum(seconds.values()),
        "whole": whole,
        "processor time": processor,
    }


@contextmanager
def _stopwatches() -> Iterator[dict[str, float]]:
    """Yield the seconds spent in the function of each stage, while the context is entered."""
    from controlplane.planning import computation as plans  # noqa: PLC0415
    from controlplane.planning import effects, execution_plan  # noqa: PLC0415
    from controlplane.planning.adapter import PlannerAdapter  # noqa: PLC0415
    from controlplane.proposals import computation  # noqa: PLC0415

    functions = (
        ("snapshot, read", computation, "take_snapshot"),
        ("snapshot, written", computation, "keep_snapshot"),
        ("planner", PlannerAdapter, "run"),
        ("resolution", computation, "resolve"),
        ("ordering", execution_plan, "in_order"),
        ("measures", plans, "measures"),
        ("effects", effects, "effects"),
    )
    seconds = dict.fromkeys((stage for stage, _, _ in functions), 0.0)
    with ExitStack() as stack:
        for stage, module, name in functions:
            stack.enter_context(_stopwatch(seconds, stage, module, name))
        yield seconds


@contextmanager
def _stopwatch(seconds: dict[str, float], stage: str, module: Any, name: str) -> Iterator[None]:
    """Add the time of every call of a module's function to the stage."""
    function = getattr(module, name)

    def timed(*arguments: Any, **named: Any) -> Any:
        started = time.perf_counter()
        try:
            return function(*arguments, **named)
        finally:
            seconds[stage] += time.perf_counter() - started

    setattr(module, name, timed)
    try:
        yield
    finally:
        setattr(module, name, function)


def _print_plan(proposal: Any) -> None:
    before: Mapping[str, Any] = proposal.before
    after: Mapping[str, Any] = proposal.after
    print(
        f"{len(proposal.actions):,} actions; safe: {proposal.predicted['safe']}; "
        "replication factor "
        f"{before['replication_factor']:.2f} to {after['replication_factor']:.2f}; imbalance "
        f"{before['imbalance']:.3f} to {after['imbalance']:.3f}, on the way at most "
        f"{max(proposal.imbalance_after, default=0.0):.3f}; queries per node "
        f"{min(after['loads']):,} to {max(after['loads']):,}"
    )


def parse_options(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--queries", type=int, default=100_000)
    parser.add_argument("--streams", type=int, default=STREAMS)
    parser.add_argument("--nodes", type=int, default=NODES)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--limit", type=int, default=1_000_000, help="moves with their effects")
    parser.add_argument("--postgres", action="store_true")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
