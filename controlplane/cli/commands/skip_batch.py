"""weir clusters skip-batch."""

from argparse import Namespace

from controlplane.cli.client.api import cluster_path
from controlplane.cli.client.connection import api_of
from controlplane.cli.output import print_facts, print_json, print_sentence, print_table


def skip_batch(given: Namespace) -> None:
    """Print the losses of skipping the stuck batch; skip it if --batch names it."""
    api, path = api_of(given), f"{cluster_path(given)}/stuck-batch"
    if given.batch is None:
        row = api.get(path)["stuck"]
    else:
        row = api.post(f"{path}/skip", batch=given.batch, reason=given.reason)
    if given.json:
        print_json(row)
    elif row is None:
        print_sentence("no batch fails again and again")
    else:
        print_facts({"batch": row["batch"], "transfers": len(row["transfers"])})
        columns = {"stream": "name", "records lost": "number"}
        print_table(columns, list(row["records"].items()), "no records")
        if given.batch is None:
            print_sentence(f"to lose these records: --batch {row['batch']} --reason WHY")
