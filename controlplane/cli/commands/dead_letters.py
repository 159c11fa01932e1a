"""weir dead-letters."""

import sys
from argparse import Namespace
from collections.abc import Iterator

from controlplane.cli.actors import viewed
from controlplane.cli.codes import Code
from controlplane.cli.output import print_answer, print_json, print_rows, print_sentence
from controlplane.models import Cluster
from controlplane.records import dead_letters
from controlplane.records.dead_letter_list import (
    DeadLetterFilters,
    csv_lines,
    dead_letters_page,
    every_row,
    ndjson_lines,
)
from controlplane.records.dead_letters import Choice, Replayed


def list_dead_letters(given: Namespace) -> None:
    """Print the newest dead letters."""
    _, cluster = viewed(given)
    page = dead_letters_page(cluster, _filters(cluster, given, limit=given.limit))
    kinds = {"stream": "text", "reason": "text", "index": "number", "message": "name"}
    columns = {name: (name, kind) for name, kind in kinds.items()}
    print_rows(given, [row.to_json() for row in page.rows], columns, "no dead letter")
    if page.next and not given.json:
        print_sentence(
            f"the newest {len(page.rows)} (--limit); weir dead-letters export has all, with ids"
        )


def export_dead_letters(given: Namespace) -> None:
    """Print all dead letters with their records."""
    _, cluster = viewed(given)
    rows = every_row(cluster, _filters(cluster, given))
    lines: Iterator[str] = csv_lines(rows) if given.format == "csv" else ndjson_lines(rows)
    for line in lines:
        sys.stdout.write(line)


def replay_dead_letters(given: Namespace) -> int:
    """Append dead letters again, each once."""
    actor, cluster = viewed(given)
    choice = Choice(tuple(given.ids), _filters(cluster, given))
    done = dead_letters.replay(actor, cluster, choice, given.zone)
    while done.next is not None:
        more = dead_letters.replay(actor, cluster, choice, given.zone, done.next)
        done = Replayed(done.appended + more.appended, done.left + more.left,
                        {**more.faults, **done.faults}, more.next)  # fmt: skip
    if given.json:
        print_json({"appended": done.appended, "left": done.left, "faults": done.faults})
    else:
        print_sentence(f"{done.appended:,} appended again, {done.left:,} left")
        for name, why in done.faults.items():
            print_sentence(f"  {name}: {why}")
    return Code.REFUSED if done.left else Code.DONE


def delete_dead_letters(given: Namespace) -> None:
    """Delete dead letters."""
    actor, cluster = viewed(given)
    choice = Choice(tuple(given.ids), _filters(cluster, given))
    removed = dead_letters.delete(actor, cluster, choice, given.reason)
    print_answer(given, {"deleted": removed}, f"{removed:,} given up")


def _filters(cluster: Cluster, given: Namespace, limit: int = 50) -> DeadLetterFilters:
    named = {"stream": given.stream, "reason": given.why, "limit": limit}
    return DeadLetterFilters.of(cluster, named)
