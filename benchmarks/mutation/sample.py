"""A sampled mutation run: which of N small faults the tests detect.

    python -m benchmarks.mutation.sample --output mutants.json [--mutants 200] [--seed 1]

Every area has an equal share of the sample. The tests of a mutant are those that execute its lines
(coverage contexts; measured in the first run, or read from --contexts). The checkout is copied:
it is never changed. --resume continues a run that was interrupted: mutants in the result and the
measured contexts beside it are used again. --again FILE tests the survivors of an earlier result,
after their tests were strengthened. A kill counts only if the failing test passes without the
mutant; the status is invalid otherwise. Equivalent mutants, which no test can detect, are listed
with their reasons in equivalents.json; they do not count.
"""

import argparse
import json
import os
import random
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import asdict
from pathlib import Path
from queue import SimpleQueue
from typing import Final

from benchmarks.mutation.mutants import Mutant, sampled
from benchmarks.mutation.selection import Contexts, measured
from benchmarks.mutation.trees import ROOT, Outcome, Tree, copied

# The folders and files of each area, and the tests that may detect their mutants.
AREAS: Final = {
    "executions": ("controlplane/proposals/executions/",),
    "policies": ("controlplane/policies/",),
    "drift": ("controlplane/proposals/drift.py", "controlplane/proposals/staleness.py"),
    "engine": ("workers/pipeline/engine/",),
}
TESTS: Final = (
    "tests/controlplane/proposals/executions",
    "tests/controlplane/policies",
    "tests/controlplane/proposals",
    "tests/controlplane/api/test_comparisons.py",
    "tests/controlplane/api/test_policies.py",
    "tests/controlplane/api/test_proposal_comments.py",
    "tests/controlplane/api/test_proposals.py",
    "tests/dashboard/policies",
    "tests/dashboard/proposals",
    "tests/docs/test_policies.py",
    "tests/workers/pipeline/engine",
    "tests/workers/pipeline/exchange",
    "tests/workers/pipeline/nodes",
    "tests/workers/pipeline/split_nodes",
    "tests/workers/pipeline/laws",
    "tests/workers/pipeline/test_samples.py",
    "tests/workers/pipeline/test_idle_streams.py",
    "tests/workers/pipeline/test_widening.py",
)
EQUIVALENTS: Final = Path(__file__).with_name("equivalents.json")


def parse_options(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, required=True, help="the file of the result (JSON)")
    parser.add_argument("--mutants", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=60.0, help="tests of a mutant, at most")
    parser.add_argument("--contexts", type=Path, help="a file of coverage contexts")
    parser.add_argument("--resume", action="store_true", help="keep the outcomes in the result")
    parser.add_argument("--again", type=Path, help="a result whose survivors are tested again")
    parser.add_argument("--areas", nargs="+", choices=AREAS, default=list(AREAS))
    return parser.parse_args(arguments)


def files_of(area: str) -> list[str]:
    """Return the modules of an area, relative to the checkout."""
    paths = []
    for part in AREAS[area]:
        files = [ROOT / part] if part.endswith(".py") else sorted((ROOT / part).rglob("*.py"))
        paths += [str(file.relative_to(ROOT)) for file in files]
    return paths


def chosen(options: argparse.Namespace) -> list[Mutant]:
    """Return the sample: the same for the same seed and sources."""
    if options.again is not None:
        rows = json.loads(options.again.read_text())["mutants"]
        survivors = [row["mutant"] for row in rows if row["status"] == "survived"]
        return [mutant for row in survivors if (mutant := _present(Mutant(**row)))]
    mutants: list[Mutant] = []
    for place, area in enumerate(options.areas):
        left = len(options.areas) - place
        count = (options.mutants - len(mutants)) // left
        chance = random.Random(f"{options.seed} {area}")
        mutants += sampled(ROOT, files_of(area), count, chance)
    return mutants


def _present(mutant: Mutant) -> Mutant | None:
    """Return a mutant of an earlier result if its text is still there."""
    source = (ROOT / mutant.path).read_text()
    return mutant if source[mutant.start : mutant.stop] == mutant.before else None


def run(
    mutants: Iterable[Mutant], contexts: Contexts, trees: Sequence[Tree], most_s: float,
    report: Callable[[Outcome], None],
) -> list[Outcome]:  # fmt: skip
    """Return the outcome of each mutant; each tree tests one mutant after another."""
    free: SimpleQueue[Tree] = SimpleQueue()
    for tree in trees:
        free.put(tree)

    def tested(mutant: Mutant) -> Outcome:
        last = mutant.line + mutant.before.count("\n")
        tests = contexts.tests(mutant.path, mutant.line, last, most_s)
        expected_s = sum(contexts.seconds[name] for name in tests)
        tree = free.get()
        try:
            at_import = contexts.runs_at_import(mutant.path, mutant.line, last)
            outcome = tree.test(mutant, tests, expected_s, at_import)
        finally:
            free.put(tree)
        report(outcome)
        return outcome

    with ThreadPoolExecutor(len(trees)) as pool:
        return list(pool.map(tested, mutants))


def is_equivalent(outcome: Outcome) -> bool:
    """Return whether the mutant is listed as equivalent."""
    rows = json.loads(EQUIVALENTS.read_text())
    key = (outcome.mutant.path, outcome.diff.splitlines()[3:])
    return any((row["path"], row["diff"]) == key for row in rows)


def table(outcomes: Sequence[Outcome]) -> str:
    """Return killed, survived, timeout and equivalent mutants by area, and the share detected."""
    rows = [
        f"{'area':12}{'mutants':>8}{'killed':>8}{'timeout':>8}{'equivalent':>11}{'survived':>9}{'invalid':>8}"
    ]
    counted = {area: _counts(area, outcomes) for area in AREAS}
    for area, counts in [*counted.items(), ("all", sum(counted.values(), Counter()))]:
        names = ("killed", "timeout", "equivalent", "survived", "invalid")
        widths = (8, 8, 11, 9, 8)
        cells = [f"{counts[name]:>{width}}" for name, width in zip(names, widths, strict=True)]
        possible = counts.total() - counts["equivalent"] - counts["invalid"]
        share = (counts["killed"] + counts["timeout"]) / possible if possible else 1.0
        rows.append(f"{area:12}{counts.total():>8}{''.join(cells)}{share:>8.1%}")
    return "\n".join(rows)


def _counts(area: str, outcomes: Sequence[Outcome]) -> Counter[str]:
    inside = [row for row in outcomes if row.mutant.path.startswith(AREAS[area])]
    return Counter(
        "equivalent" if row.status == "survived" and is_equivalent(row) else row.status
        for row in inside
    )


def known_outcomes(options: argparse.Namespace, mutants: Sequence[Mutant]) -> list[Outcome]:
    """Return the outcomes of these mutants in the result that a run continues."""
    if not options.resume or not options.output.exists():
        return []
    rows = json.loads(options.output.read_text())["mutants"]
    known = [Outcome(**{**row, "mutant": Mutant(**row["mutant"])}) for row in rows]
    return [row for row in known if row.mutant in mutants]


def contexts_file(options: argparse.Namespace) -> Path:
    """Return the file of the contexts; a run that continues none measures its own."""
    if options.contexts is not None:
        return Path(options.contexts)
    file = Path(options.output.with_suffix(".contexts.json"))
    if not options.resume:
        file.unlink(missing_ok=True)
    return file


def main() -> None:
    options = parse_options()
    os.nice(19)
    mutants = chosen(options)
    outcomes = known_outcomes(options, mutants)
    tested = {row.mutant for row in outcomes}
    with tempfile.TemporaryDirectory(prefix="weir-mutants-") as folder, ExitStack() as stack:
        roots = [copied(Path(folder) / str(number)) for number in range(options.processes)]
        sources = sorted({str(Path(part).parent) if part.endswith(".py") else part
                          for area in AREAS for part in AREAS[area]})  # fmt: skip
        contexts = measured(roots[0], contexts_file(options), sources, TESTS)
        trees = [stack.enter_context(closing(Tree(root, TESTS))) for root in roots]

        def report(outcome: Outcome) -> None:
            outcomes.append(outcome)
            place = f"{outcome.mutant.path}:{outcome.mutant.line}"
            print(
                f"{len(outcomes):4} {outcome.status:9}{outcome.seconds:7.1f} s  {place}", flush=True
            )
            write(options, contexts, outcomes)

        left = [mutant for mutant in mutants if mutant not in tested]
        run(left, contexts, trees, options.seconds, report)
    for row in outcomes:
        if row.status in {"survived", "invalid"}:
            print(f"\n{'equivalent' if is_equivalent(row) else row.status}:\n{row.diff}")
    print(f"\nseed {options.seed}\n{table(outcomes)}")


def write(options: argparse.Namespace, contexts: Contexts, outcomes: Sequence[Outcome]) -> None:
    """Write the outcomes to the file of the result."""
    result = {
        "seed": options.seed,
        "failed_without_mutants": sorted(contexts.failed),
        "mutants": [asdict(row) for row in outcomes],
    }
    options.output.write_text(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
