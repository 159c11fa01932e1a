"""Copies of the checkout, in which mutants are tested."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

from benchmarks.mutation.mutants import Mutant

ROOT: Final = Path(__file__).parents[2]
# What a run with a mutant may take: in times of its duration without one, and for its start. After
# a time-out the duration is measured again.
TIMES, START_S = 2.0, 20.0
# Codes of pytest: a test failed, interrupted, internal error, usage error (a module fails to load).
KILLED: Final = frozenset({1, 2, 3, 4})
_FAILED: Final = 1
_DAY_S: Final = 86_400
OPTIONS: Final = ("-q", "-p", "no:cacheprovider", "--hypothesis-seed=0", "--no-header", "--tb=no")
# What no mutant is tested with: it starts Spark, a browser or PostgreSQL.
WITHOUT: Final = ("-m", "not spark and not browser", "-k", "not postgresql")


@dataclass(frozen=True)
class Outcome:
    """What a mutant's tests did: killed, survived, or timeout, which counts as killed.

    Or invalid: a test fails without the mutant, too. It counts neither way.
    """

    mutant: Mutant
    diff: str
    status: str
    tests: int
    seconds: float


def copied(target: Path) -> Path:
    """Copy the files of the checkout that git knows or would add, as they are now."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, check=True, capture_output=True, text=True,
    ).stdout  # fmt: skip
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, target / name)
    return target


def environment_of(tree: Path) -> dict[str, str]:
    """Return an environment in which Python imports Weir from the copy."""
    own = {"PYTHONPATH": str(tree), "PYTHONHASHSEED": "0", "NUMBA_CACHE_DIR": str(tree / ".numba")}
    return {**os.environ, **own}


class Tree:
    """A copy of the checkout, with a process that has collected the tests."""

    def __init__(self, root: Path, tests: Sequence[str]) -> None:
        self.root = root
        self._passes: dict[tuple[str, ...], bool] = {}
        requests, self._requests = os.pipe()
        self._answers, answers = os.pipe()
        command = [sys.executable, "-m", "pytest", *OPTIONS, *WITHOUT]
        command += ["-p", "benchmarks.mutation.server", *tests]
        self._server = subprocess.Popen(
            command, cwd=root, pass_fds=(requests, answers), start_new_session=True,
            env={**environment_of(root), "WEIR_MUTANTS": f"{requests},{answers}"},
            stdout=subprocess.DEVNULL,
        )  # fmt: skip
        os.close(requests)
        os.close(answers)
        self._writer: IO[str] = os.fdopen(self._requests, "w")
        self._reader: IO[str] = os.fdopen(self._answers)

    def close(self) -> None:
        """Stop the process."""
        self._writer.close()
        try:
            self._server.wait(60)
        except subprocess.TimeoutExpired:
            _kill(self._server)

    def test(
        self, mutant: Mutant, tests: Sequence[str], expected_s: float, at_import: bool
    ) -> Outcome:
        """Run tests with a mutant until one fails.

        `at_import`: the import executes the mutant, so that it needs a process of its own.
        """
        started, file = time.monotonic(), self.root / mutant.path
        source = file.read_text()
        mutated, limit_s = mutant.applied(source), START_S + TIMES * expected_s
        status = self._status(file, source, mutated, tests, limit_s, at_import)
        if status == "timeout":
            # The machine may be busier now than when the durations were measured.
            unmutated_s = self._unmutated_s(file, source, tests)
            if START_S + TIMES * unmutated_s > limit_s:
                limit_s = START_S + TIMES * unmutated_s
                status = self._status(file, source, mutated, tests, limit_s, at_import)
        seconds = round(time.monotonic() - started, 1)
        return Outcome(mutant, mutant.diff(source), status, len(tests), seconds)

    def _status(
        self, file: Path, source: str, mutated: str, tests: Sequence[str], limit_s: float,
        at_import: bool,
    ) -> str:  # fmt: skip
        request = {
            "path": str(file.relative_to(self.root)), "original": source, "mutated": mutated,
            "tests": list(tests), "timeout_s": limit_s,
        }  # fmt: skip
        status = "survived" if not tests else "unpatched" if at_import else self._ask(request)
        if status == "unpatched":
            status = self._in_own_process(file, source, mutated, tests, limit_s)
        return status

    def _unmutated_s(self, file: Path, source: str, tests: Sequence[str]) -> float:
        """Return the seconds that the tests take now without a mutant."""
        started = time.monotonic()
        self._status(file, source, source, tests, float(_DAY_S), at_import=False)
        return time.monotonic() - started

    def _ask(self, request: dict[str, object]) -> str:
        self._writer.write(json.dumps(request) + "\n")
        self._writer.flush()
        return str(json.loads(self._reader.readline()))

    def _in_own_process(
        self, file: Path, source: str, mutated: str, tests: Sequence[str], limit_s: float
    ) -> str:
        """Write the mutant, run the tests in a new process, and write the source again."""
        try:
            _write(file, mutated)
            code = _pytest(self.root, tests, limit_s)
        finally:
            _write(file, source)
        if code == _FAILED and not self._pass_unmutated(tuple(tests)):
            return "invalid"
        return "timeout" if code is None else "killed" if code in KILLED else "survived"

    def _pass_unmutated(self, tests: tuple[str, ...]) -> bool:
        """Return whether the tests pass in a new process without a mutant."""
        if tests not in self._passes:
            self._passes[tests] = _pytest(self.root, tests, float(_DAY_S)) == 0
        return self._passes[tests]


def _write(file: Path, text: str) -> None:
    # Two versions of one size within a second would share their compiled module.
    for compiled in (file.parent / "__pycache__").glob(f"{file.stem}.*.pyc"):
        compiled.unlink()
    file.write_text(text)


def _pytest(tree: Path, tests: Sequence[str], timeout_s: float) -> int | None:
    """Return the exit code of pytest, None after the time-out."""
    process = subprocess.Popen(
        [sys.executable, "-m", "pytest", *OPTIONS, "-x", *tests],
        cwd=tree, env=environment_of(tree), start_new_session=True,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        return process.wait(timeout_s)
    except subprocess.TimeoutExpired:
        return None
    finally:
        _kill(process)


def _kill(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
