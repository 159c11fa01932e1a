"""Speed of the migration planners on one core, medians after compilation.

python -m benchmarks.planners.migration_speed [--repeats 15] [--tasks 4096]
"""

import argparse
import functools
import json
import statistics
import time
from collections.abc import Callable, Sequence

import numpy as np

from algorithms.lab.migration.schedule import schedule_transfers
from algorithms.lab.migration.ssm import ssm
from algorithms.migration.grades import grades_of
from algorithms.migration.problem import MigrationProblem
from algorithms.migration.result import runs
from algorithms.migration.single_step import best_parts

# tasks, present nodes, target nodes, milliseconds demanded
_CASES = ((64, 12, 16, 0.2), (1_024, 48, 64, 15.0), (4_096, 100, 128, 250.0))
_TAU = 1.2
_LINKS = 64
_SLOW_FROM = 2_000
_ENTRIES, _NODES = 4_096, 128


def main() -> None:
    options = parse_options()
    repeats = options.repeats
    for tasks, present, nodes, demanded in _CASES:
        if tasks <= options.tasks:
            report_single_step(drawn(tasks, present, nodes), repeats, demanded)
    report_schedule(repeats)
    report_tables(repeats)


def drawn(tasks: int, present: int, nodes: int) -> MigrationProblem:
    draw = np.random.default_rng(0)
    inner = np.sort(draw.choice(np.arange(1, tasks), present - 1, replace=False))
    starts = np.concatenate([[0], inner])
    return MigrationProblem.of(draw.random(tasks) + 0.5, draw.random(tasks), starts, nodes, _TAU)


def report_single_step(problem: MigrationProblem, repeats: int, demanded: float) -> None:
    before = problem.work_before, problem.state_before, problem.bounds
    grades, limit = grades_of(problem), float(problem.limits[0])
    seconds = median(lambda: best_parts(*before, grades), repeats)
    name = f"single step, m = {problem.tasks}, n' = {problem.nodes}, tau = {_TAU:g}"
    print(f"{name:48} {seconds * 1e3:9.3f} ms (demanded {demanded:g} ms)")
    few = min(3, repeats) if problem.tasks > _SLOW_FROM else repeats
    paper = median(lambda: ssm(*before, limit, problem.nodes), few)
    print(f"{'  the same by figure 4, repaired':48} {paper * 1e3:9.3f} ms")


def report_schedule(repeats: int) -> None:
    draw = np.random.default_rng(0)
    amounts = draw.integers(1, 2**40, (_LINKS, _LINKS))
    np.fill_diagonal(amounts, 0)
    seconds = median(lambda: schedule_transfers(amounts), repeats)
    optimum = max(amounts.sum(axis=0).max(), amounts.sum(axis=1).max())
    same = "yes" if schedule_transfers(amounts).total == optimum else "NO"
    print(f"{f'schedule, {_LINKS} nodes, dense':48} {seconds * 1e3:9.1f} ms (demanded 1000 ms)")
    print(f"{'  sum of phases equals the optimum':48} {same:>9}")


def report_tables(repeats: int) -> None:
    """What a routing table costs: to read and unpack when it changes, and for every record."""
    draw = np.random.default_rng(0)
    bounds = np.sort(draw.choice(np.arange(1, _ENTRIES), _NODES - 1, replace=False))
    of_intervals = np.searchsorted(bounds, np.arange(_ENTRIES), side="right").astype(np.int32)
    of_tasks = draw.integers(0, _NODES, _ENTRIES).astype(np.int32)
    for name, table in (("intervals", of_intervals), ("free", of_tasks)):
        text = json.dumps(runs(table, range(_NODES)))
        seconds = median(functools.partial(unpacked, text), repeats)
        title = f"table of {_ENTRIES:,} tasks, {name}: {len(text):,} bytes"
        print(f"{title:48} {seconds * 1e3:9.2f} ms to unpack")
    records = draw.integers(0, _ENTRIES, 1_000_000)
    searched = median(lambda: np.searchsorted(bounds, records, side="right"), repeats)
    looked_up = median(lambda: of_tasks[records], repeats)
    print(f"{'1M records to nodes, unpacked, either kind':48} {looked_up * 1e3:9.2f} ms")
    print(f"{f'1M records to nodes, {_NODES} bounds searched':48} {searched * 1e3:9.2f} ms")


def unpacked(text: str) -> np.ndarray:
    """Return the node of each task from a table's runs, as who routes records keeps it."""
    entries = np.array(json.loads(text))
    return np.repeat(entries[:, 0], entries[:, 2] - entries[:, 1])


def median(action: Callable[[], object], repeats: int) -> float:
    action()
    times = []
    for _ in range(repeats):
        started = time.perf_counter()
        action()
        times.append(time.perf_counter() - started)
    return statistics.median(times)


def parse_options(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--tasks", type=int, default=4_096, help="of the largest case")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
