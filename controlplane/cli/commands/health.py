"""weir clusters health, decide, skip-batch."""

from argparse import Namespace
from collections.abc import Mapping
from typing import Any, Final

from controlplane.cli.backends import api_of
from controlplane.cli.backends.interface import cluster_path, path_of
from controlplane.cli.output import (
    print_answer,
    print_facts,
    print_json,
    print_rows,
    print_sentence,
    print_table,
)
from controlplane.health.disks import FullDisk

_COLUMNS: Final = {
    "at": ("at", "text"), "cause": ("cause", "text"), "batch": ("batch", "number"),
    "unread": ("unread", "number"), "detail": ("detail", "text"),
}  # fmt: skip
_RESTART: Final = ("at", "cause", "batch", "unread", "exit_code", "detail")
_INCIDENT: Final = ("id", "at", "kind", "state", "lost", "done", "choices")
_PROGRESS: Final = ("batch", "unread", "rate")


def show_health(given: Namespace) -> None:
    """Print progress, restarts and incidents of a cluster."""
    health = api_of(given).get(f"{cluster_path(given)}/health")
    restarts = [_picked(row, _RESTART) for row in health["restarts"]]
    incidents = [_picked(row, _INCIDENT) for row in health["incidents"]]
    facts, stuck = _facts(given.cluster, health), health["stuck_batch"]
    if given.json:
        print_json(facts | {"restarts": restarts, "incidents": incidents})
        return
    print_facts(facts)
    print_rows(given, restarts, _COLUMNS, "no restart")
    for disk in health["full_disks"]:
        print_sentence(str(FullDisk(**disk)))
    for item in health["skipped"]:
        print_sentence(f"{item['count']} entries of {item['place']} skipped: {item['reason']}")
    if stuck is not None:
        print_sentence(f"batch {stuck['batch']} cannot be processed: it has failed "
            f"{stuck['failures']} times in a row: {stuck['cause']}")  # fmt: skip
    for row in incidents:
        print_sentence(f"incident {row['id']} {row['kind']} ({row['state']}) {row['at']}")
        for text in (*row["lost"], *row["done"]):
            print_sentence(f"  {text}")
        if row["choices"]:
            print_sentence(f"  choose: {', '.join(row['choices'])}")


def decide_incident(given: Namespace) -> None:
    """Apply one of an incident's choices."""
    path = path_of("/clusters/{cluster}/incidents/{incident}/decide", vars(given))
    row = api_of(given).post(path, choice=given.choice, reason=given.reason)
    text = f"incident {row['id']} of {given.cluster}: {row['decision']}"
    print_answer(given, _picked(row, _INCIDENT), text)


def skip_batch(given: Namespace) -> None:
    """Print the losses of skipping the stuck batch; skip it if --batch names it."""
    api, path = api_of(given), f"{cluster_path(given)}/stuck-batch"
    if given.batch is not None:
        row = api.post(f"{path}/skip", batch=given.batch, reason=given.reason)
        _print_losses(row | {"transfers": len(row["transfers"])}, given)
        return
    batch = api.get(path)["stuck"]
    if batch is None:
        print_answer(given, None, "no batch fails again and again")
        return
    facts = batch | {"transfers": len(batch["transfers"]), "cause": batch["cause"] or None}
    _print_losses(facts, given)
    if not given.json:
        print_sentence(f"to lose these records: --batch {batch['batch']} --reason WHY")


def _facts(cluster: str, health: Mapping[str, Any]) -> dict[str, Any]:
    progress, stuck = health["progress"] or {}, health["stuck_batch"]
    return {
        "cluster": cluster,
        "state": health["state"],
        "detail": health["state_detail"] or None,
        **{name: progress.get(name) for name in _PROGRESS},
        "stuck_batch": stuck["batch"] if stuck else None,
        "restarts_last_hour": health["restarts_last_hour"],
    }


def _picked(row: Mapping[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    return {name: row[name] for name in names}


def _print_losses(facts: dict[str, Any], given: Namespace) -> None:
    if given.json:
        print_json(facts)
        return
    print_facts({name: value for name, value in facts.items() if name != "records"})
    rows = [[name, count] for name, count in facts["records"].items()]
    print_table({"stream": "name", "records lost": "number"}, rows, "no records")
