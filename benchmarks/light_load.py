"""A lightly loaded pipeline against that of another checkout, side by side and by turns.

    python -m benchmarks.light_load --against PATH [--turns 8] [--seconds 20]

PATH is a git worktree. Each pipeline is `light_side.py`, run with the code of its checkout. Both
pipelines run at once, each on a Redis of its own, with 300 queries on 4 nodes; 334 records/s flow
into one of them at a time, and who comes first alternates, so both see the same machine. Prints
each turn, then the medians and the median ratio of the turns beside each other, without the first
turn, in which the pipelines warm up. `cpu_ms`: processor time per micro-batch of all processes of
the pipeline.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from benchmarks.checkouts import HERE, checkout, commit_of, require_checkout

SIDE: Final = HERE / "benchmarks" / "light_side.py"
# The slowest of the demanded figures may be this much above the other checkout's.
DEMANDED: Final = 1.1
_MEASURES: Final = ("micro_batch_ms", "append_to_result_ms", "cpu_ms", "pss_mb")

Report = dict[str, float]


def main() -> None:
    options = parse_options()
    require_checkout(options.against, "benchmarks/data_plane.py")
    print(f"this: {commit_of(HERE)}, other: {commit_of(options.against)}")
    turns: list[tuple[Report, Report]] = []
    with running_side(HERE) as own, running_side(options.against) as other:
        for number in range(options.turns):
            order = (own, other) if number % 2 == 0 else (other, own)
            reports = {id(side): measured(side, options.seconds) for side in order}
            turns.append((reports[id(own)], reports[id(other)]))
            print(f"  turn {number + 1}: this {turns[-1][0]}, other {turns[-1][1]}", flush=True)
    report(turns[1:])


def report(turns: Sequence[tuple[Report, Report]]) -> None:
    """Print the medians of each figure, and the median of its ratios."""
    for name in _MEASURES:
        own, other = ([reports[side][name] for reports in turns] for side in (0, 1))
        ratio = statistics.median(a / b for a, b in zip(own, other, strict=True))
        text = f"this {statistics.median(own):g}, other {statistics.median(other):g}"
        outcome = "reached" if ratio <= DEMANDED else "MISSED"
        print(f"{name}: {text}, ratio {ratio:.3f}, demanded {DEMANDED:g} or less: {outcome}")


@contextmanager
def running_side(checkout: Path) -> Iterator["subprocess.Popen[str]"]:
    """Yield a process that runs the pipeline of a checkout and measures it on request."""
    process = subprocess.Popen(
        [sys.executable, str(SIDE)],
        cwd=checkout,
        env={**os.environ, "PYTHONPATH": str(checkout)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        if process.stdout.readline().strip() != "ready":
            raise SystemExit(f"the pipeline of {checkout} did not start")
        yield process
    finally:
        assert process.stdin is not None
        process.stdin.close()
        process.wait(60)


def measured(side: "subprocess.Popen[str]", seconds: float) -> Report:
    """Let records flow into one pipeline for so long; return its figures."""
    assert side.stdin is not None
    assert side.stdout is not None
    side.stdin.write(f"{seconds}\n")
    side.stdin.flush()
    report: Report = json.loads(side.stdout.readline())
    return report


def parse_options(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="benchmarks.light_load", description=__doc__)
    parser.add_argument("--against", type=checkout, required=True, metavar="PATH")
    parser.add_argument("--turns", type=int, default=8, help="of each pipeline; 2 or more")
    parser.add_argument("--seconds", type=float, default=20, help="of each turn")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
