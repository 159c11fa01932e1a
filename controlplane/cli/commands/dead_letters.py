"""weir dead-letters."""

import sys
from argparse import Namespace
from typing import Any

from controlplane.cli.backends import api_of
from controlplane.cli.backends.interface import path_of
from controlplane.cli.codes import Code
from controlplane.cli.output import print_answer, print_json, print_rows, print_sentence


def list_dead_letters(given: Namespace) -> None:
    """Print the newest dead letters."""
    body = api_of(given).get(_path(given), stream=given.stream, reason=given.why, limit=given.limit)
    rows = body["dead_letters"]
    kinds = {"stream": "text", "reason": "text", "index": "number", "message": "name"}
    columns = {name: (name, kind) for name, kind in kinds.items()}
    print_rows(given, rows, columns, "no dead letter")
    if body["next"] and not given.json:
        print_sentence(
            f"the newest {len(rows)} (--limit); weir dead-letters export has all, with ids"
        )


def export_dead_letters(given: Namespace) -> None:
    """Print all dead letters with their records."""
    query = {"stream": given.stream, "reason": given.why, "format": given.format}
    sys.stdout.write(api_of(given).answer("GET", f"{_path(given)}/export", query).text)


def replay_dead_letters(given: Namespace) -> int:
    """Append dead letters again, each once."""
    api, path = api_of(given), f"{_path(given)}/replay"
    appended = left = 0
    faults: dict[str, Any] = {}
    after: int | None = 0
    while after is not None:
        done = api.post(path, **_choice(given), zone=given.zone, after=after)
        appended, left = appended + done["appended"], left + done["left"]
        faults = {**done["faults"], **faults}
        after = done["next"]
    if given.json:
        print_json({"appended": appended, "left": left, "faults": faults})
    else:
        print_sentence(f"{appended:,} appended again, {left:,} left")
        for name, why in faults.items():
            print_sentence(f"  {name}: {why}")
    return Code.REFUSED if left else Code.DONE


def delete_dead_letters(given: Namespace) -> None:
    """Delete dead letters."""
    path = f"{_path(given)}/delete"
    removed = api_of(given).post(path, **_choice(given), reason=given.reason)["deleted"]
    print_answer(given, {"deleted": removed}, f"{removed:,} given up")


def _path(given: Namespace) -> str:
    return path_of("/clusters/{cluster}/dead-letters", vars(given))


def _choice(given: Namespace) -> dict[str, Any]:
    chosen = {"ids": given.ids or None, "stream": given.stream, "reason_code": given.why}
    return chosen | {"all": given.all}
