"""The time that a running Weir takes to recover from killed and stopped processes.

    python -m benchmarks.availability.recovery [--stop S] [--only NAME ...] [--pairs] [--cold]

While a mixed plan is executed, with one action a step and the default tolerances of the policy,
each process is killed with -9 in turn, or stopped for S seconds and continued. A driver is killed
when its spare is ready; with `--cold` there is none. Prints a row for each: seconds until another
process runs, a page is served, a further step is done, and records that were sent afterwards are in
the results. At the end the execution must be done with each action once, and all results must be
those of the records; otherwise the benchmark fails.
"""

import argparse
import logging
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import astuple, fields
from itertools import pairwise
from pathlib import Path

from tests.end_to_end.harbour import ENVIRONMENT, Harbour, Recovery
from tests.end_to_end.weir_processes import COMMANDS
from tests.support.running_weir import RunningWeir


def main() -> None:
    """Print the table."""
    logging.getLogger("httpx").setLevel(logging.WARNING)
    arguments = parse_options()
    with tempfile.TemporaryDirectory(prefix="weir-bench-") as folder:
        spare = {} if arguments.cold else {"WEIR_SPARE_DRIVER": "1"}
        weir = RunningWeir(Path(folder) / "data", ENVIRONMENT | spare)
        print(f"start of Weir {weir.start():.1f} s", flush=True)
        try:
            _measure(Harbour(weir), arguments)
        finally:
            weir.end()


def _measure(harbour: Harbour, arguments: argparse.Namespace) -> None:
    harbour.begin()
    harbour.settle()
    columns = [field.name for field in fields(Recovery)]
    print("".join([f"{'':22}", *(f"{name:>10}" for name in columns)]), flush=True)
    with harbour.flow(0):
        harbour.execute()
        for name, act in _acts(harbour, arguments):
            if "driver" in name and not arguments.cold:
                harbour.wait(lambda: _has_spare(harbour.weir))
            row = astuple(act())
            print("".join([f"{name:22}", *(f"{value:10.1f}" for value in row)]), flush=True)
    harbour.finish()
    print("done: each action once, all results right")


def _has_spare(weir: RunningWeir) -> bool:
    log = weir.data / "logs" / "spare.log"
    return log.exists() and "ready" in log.read_text()


def _acts(
    harbour: Harbour, arguments: argparse.Namespace
) -> list[tuple[str, Callable[[], Recovery]]]:
    names = arguments.only or list(COMMANDS)
    if arguments.stop:
        seconds = arguments.stop
        return [(name, lambda name=name: harbour.stop(name, seconds)) for name in names]  # type: ignore[misc]
    groups = [(name,) for name in names] if not arguments.pairs else list(pairwise(names))
    return [(", ".join(group), lambda group=group: harbour.kill(group)) for group in groups]  # type: ignore[misc]


def parse_options(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Return the options of a command line, by default that of the process."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--stop", type=float, default=0.0, help="seconds; 0: kill (-9)")
    parser.add_argument("--only", nargs="*", choices=tuple(COMMANDS), help="processes, in order")
    parser.add_argument("--pairs", action="store_true", help="kill two in a row")
    parser.add_argument("--cold", action="store_true", help="drivers without a spare")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
