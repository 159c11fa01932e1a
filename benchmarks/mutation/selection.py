"""Which tests execute a line, the fastest first."""

import json
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.mutation.trees import OPTIONS, WITHOUT, environment_of

PLUGIN = "benchmarks.mutation.contexts"


@dataclass(frozen=True)
class Contexts:
    """The tests by line (from 1) and file, the seconds of each test, and those that fail unmutated.

    A line that runs during the import of its module has the test "".
    """

    lines: Mapping[str, Mapping[int, Sequence[str]]]
    seconds: Mapping[str, float]
    failed: frozenset[str]

    def tests(self, path: str, line: int, last: int, most_s: float) -> list[str]:
        """Return the tests that execute one of the lines, or the file if it runs at import.

        Then those of the folder. The fastest come first, up to `most_s` seconds together.
        """
        by_line = self.lines.get(path, {})
        names = {name for number in range(line, last + 1) for name in by_line.get(number, ())}
        # A part of an expression over several lines has no line of its own.
        first = next((number for number in range(line, 0, -1) if by_line.get(number)), line)
        names = names or set(by_line.get(first, ()))
        # Lines that run in child processes are not measured: the tests of the folder follow.
        folder = f"tests/{path.rpartition('/')[0]}/"
        beside = {name for name in self.seconds if name.startswith(folder)} - names
        if "" in names:
            # What the import makes is seen by tests that run no line of it.
            names |= {name for tests in by_line.values() for name in tests} | beside
            names |= {name for name in self.seconds if folder.startswith(_folder_of(name))}
            beside = set()
        ordered = [*self._fastest(names), *self._fastest(beside)]
        chosen: list[str] = []
        total = 0.0
        for name in ordered:
            total += self.seconds[name]
            if chosen and total > most_s:
                break
            chosen.append(name)
        return chosen

    def runs_at_import(self, path: str, line: int, last: int) -> bool:
        """Return whether one of the lines runs during the import of its module."""
        by_line = self.lines.get(path, {})
        return any("" in by_line.get(number, ()) for number in range(line, last + 1))

    def _fastest(self, names: Iterable[str]) -> list[str]:
        """Return the tests that pass unmutated, the fastest first."""
        known = [name for name in names if name in self.seconds and name not in self.failed]
        return sorted(known, key=lambda name: (self.seconds[name], name))


def _folder_of(test: str) -> str:
    return test.partition("::")[0].rpartition("/")[0] + "/"


def measured(tree: Path, file: Path, sources: Sequence[str], tests: Sequence[str]) -> Contexts:
    """Return the contexts in a file; if it does not exist, run the tests to write it."""
    if not file.exists():
        command = [sys.executable, "-m", "pytest", *OPTIONS, *WITHOUT, "-p", PLUGIN, *tests]
        extra = {"WEIR_CONTEXTS": str(file.resolve()), "WEIR_CONTEXTS_SOURCES": ":".join(sources)}
        subprocess.run(command, cwd=tree, env={**environment_of(tree), **extra}, check=False)
    read = json.loads(file.read_text())
    lines = {
        path: {int(line): names for line, names in by_line.items()}
        for path, by_line in read["lines"].items()
    }
    return Contexts(lines, read["seconds"], frozenset(read["failed"]))
