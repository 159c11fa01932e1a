"""weir dead-letters replay."""

from argparse import Namespace
from typing import Any

from controlplane.cli.client.api import cluster_path
from controlplane.cli.client.connection import api_of
from controlplane.cli.codes import ExitCode
from controlplane.cli.output import print_json, print_sentence


def replay_dead_letters(given: Namespace) -> int:
    """Append dead letters again, each once."""
    api, path = api_of(given), f"{cluster_path(given)}/dead-letters/replay"
    choice = {"ids": given.ids or None, "stream": given.stream, "reason_code": given.why,
              "all": given.all, "zone": given.zone}  # fmt: skip
    appended = left = 0
    faults: dict[str, Any] = {}
    after: str | None = ""
    while after is not None:
        done = api.post(path, **choice, after=after)
        appended, left = appended + done["appended"], left + done["left"]
        faults = {**done["faults"], **faults}
        after = done["next"]
    if given.json:
        print_json({"appended": appended, "left": left, "faults": faults})
    else:
        print_sentence(f"{appended:,} appended again, {left:,} left")
        for name, why in faults.items():
            print_sentence(f"  {name}: {why}")
    return ExitCode.REFUSED if left else ExitCode.DONE
