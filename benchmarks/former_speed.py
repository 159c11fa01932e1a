"""Records/s of the pipelines of this checkout and of a former one, over the same log.

    python -m benchmarks.former_speed --former PATH [--queries 1] [--runs 3] [--no-distinct]
        [--key stream | car] [--records N] [--max-records 200000] [--seconds 60] [--warm 4]
        [--least 0.95]

PATH is a git worktree of a former commit. Every run is `benchmarks.native_compare` of one checkout
without its native side: with the code of that checkout it fills a log with the recorded taxi
reports, starts the pipeline on the full log, and measures records/s from the end of batch `--warm`
until results of all records can be read. The checkouts run in turns, and who runs first alternates.
Prints each run, the medians, and the median ratio of the runs beside each other; `--least`: the
required ratio.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from benchmarks.checkouts import HERE, checkout, commit_of, require_checkout

MODULE: Final = "benchmarks.native_compare"


@dataclass(frozen=True)
class Pair:
    """One run of each checkout: records/s of the present and of the former one."""

    present: float
    former: float

    @property
    def ratio(self) -> float:
        """Return present over former."""
        return self.present / self.former


def main() -> None:
    options = parse_options()
    require_checkout(options.former, "benchmarks/native_compare.py")
    print(f"present: {commit_of(HERE)}, former: {commit_of(options.former)}")
    pairs = []
    for run in range(options.runs):
        checkouts = [HERE, options.former]
        order = checkouts if run % 2 == 0 else checkouts[::-1]
        rates = {checkout: rate_of(checkout, options) for checkout in order}
        pairs.append(Pair(rates[HERE], rates[options.former]))
        print(f"  run {run + 1}: {shown(pairs[-1])}", flush=True)
    present = statistics.median(pair.present for pair in pairs)
    former = statistics.median(pair.former for pair in pairs)
    ratio = statistics.median(pair.ratio for pair in pairs)
    outcome = "reached" if ratio >= options.least else "MISSED"
    print(f"medians: present {present:,.0f} records/s, former {former:,.0f} records/s")
    print(f"median ratio {ratio:.3f}, at least {options.least:g}: {outcome}")


def shown(pair: Pair) -> str:
    return (
        f"present {pair.present:,.0f} records/s, former {pair.former:,.0f} records/s, "
        f"ratio {pair.ratio:.3f}"
    )


def rate_of(checkout: Path, options: argparse.Namespace) -> float:
    """Return records/s of a checkout's pipeline over the whole log."""
    done = subprocess.run(
        [sys.executable, "-m", MODULE, *arguments_of(options)],
        cwd=checkout,
        env={**os.environ, "PYTHONPATH": str(checkout)},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"{checkout}:\n{done.stderr[-3000:]}")
    row: Any = json.loads(done.stdout)[0]["weir"]
    if not row["whole"]:
        raise RuntimeError(f"{checkout} did not read the whole log: give it more --seconds")
    return float(row["records_per_s"])


def arguments_of(options: argparse.Namespace) -> list[str]:
    """Return the options of one run of `native_compare`."""
    numbers = {
        "queries": options.queries, "nodes": options.nodes, "max-records": options.max_records,
        "seconds": options.seconds, "warm": options.warm, "runs": 1, "native-up-to": 0,
    }  # fmt: skip
    if options.records:
        numbers["records"] = options.records
    arguments = [part for name, value in numbers.items() for part in (f"--{name}", str(value))]
    distinct = "--distinct" if options.distinct else "--no-distinct"
    return [*arguments, "--key", options.key, distinct, "--json"]


def parse_options(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="benchmarks.former_speed", description=__doc__)
    parser.add_argument("--former", type=checkout, required=True, metavar="PATH")
    parser.add_argument("--queries", type=int, default=1)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--key", choices=["car", "stream"], default="stream")
    parser.add_argument("--distinct", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--nodes", type=int, default=8)
    parser.add_argument("--records", type=int, help="of the log; default all")
    parser.add_argument("--max-records", type=int, default=200_000, help="of a batch")
    parser.add_argument("--seconds", type=int, default=60, help="per run, without its start")
    parser.add_argument("--warm", type=int, default=4, help="first batches that do not count")
    parser.add_argument("--least", type=float, default=0.95, help="the required ratio")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
