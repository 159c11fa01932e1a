"""weir streams characteristics."""

from argparse import Namespace

from controlplane.cli.client.connection import api_of
from controlplane.cli.client.paths import stream_path
from controlplane.cli.output import print_json, print_table
from controlplane.cli.settings import settings_of


def characteristics(given: Namespace) -> None:
    """Print the characteristics of a stream, or declare them: those without a value end."""
    api, path = api_of(given), f"{stream_path(given)}/characteristics"
    row = api.get(path)
    if given.values:
        changed = row["declared"] | settings_of(given.values)
        kept = {name: value for name, value in changed.items() if value not in (None, "")}
        stream = api.request("PUT", path, body=kept | {"reason": given.reason})
        row["declared"] = stream["characteristics"]
    if given.json:
        print_json(row)
        return
    parts = (row["declared"], row["measured"])
    names = dict.fromkeys(name for part in parts for name in part)
    columns = {"characteristic": "name", "declared": "text", "measured": "text"}
    rows = [[name, *(part.get(name) for part in parts)] for name in names]
    print_table(columns, rows, "none is declared or measured")
