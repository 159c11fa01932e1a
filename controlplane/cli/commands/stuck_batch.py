"""weir clusters skip-batch."""

from argparse import Namespace
from typing import Any

from controlplane.cli.actors import viewed
from controlplane.cli.output import (
    print_answer,
    print_facts,
    print_json,
    print_sentence,
    print_table,
    values_of,
)
from controlplane.health import skipped_batches
from controlplane.health.stuck_batches import losses_of, stuck_batch
from controlplane.models import SkippedBatch


def skip_batch(given: Namespace) -> None:
    """Print the losses of skipping the stuck batch; skip it if --batch names it."""
    actor, cluster = viewed(given)
    if given.batch is not None:
        _print(_skipped(skipped_batches.skip(actor, cluster, given.batch, given.reason)), given)
        return
    batch = stuck_batch(cluster)
    if batch is None:
        print_answer(given, None, "no batch fails again and again")
        return
    losses, attempt = losses_of(cluster, batch.attempt), batch.attempt
    facts = {
        **values_of(attempt, "batch failures start", stop="end"),
        "total": losses.total,
        "records": dict(losses.records),
        "transfers": len(losses.transfers),
        "cause": batch.cause or None,
        "skip_requested": batch.skipped is not None,
    }
    _print(facts, given)
    if not given.json:
        print_sentence(f"to lose these records: --batch {batch.batch} --reason WHY")


def _print(facts: dict[str, Any], given: Namespace) -> None:
    if given.json:
        print_json(facts)
        return
    print_facts({name: value for name, value in facts.items() if name != "records"})
    rows = [[name, count] for name, count in facts["records"].items()]
    print_table({"stream": "name", "records lost": "number"}, rows, "no records")


def _skipped(row: SkippedBatch) -> dict[str, Any]:
    return {
        **values_of(row, "batch failures start stop total records"),
        "transfers": len(row.transfers),
        **values_of(row, "reason by"),
        "asked_at": row.asked_at.isoformat(timespec="seconds"),
        "done_at": row.done_at.isoformat(timespec="seconds") if row.done_at else None,
    }
