"""Supervision of child processes: start, restart with back-off, and stop; and their log files.

No death of a child ends Weir: a site with one process missing is worth more than none.
"""

import random
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from controlplane.child_processes import trees
from controlplane.child_processes.preload import Process
from controlplane.child_processes.start import spawn
from controlplane.formats.log_lines import escaped
from controlplane.processes.runtime.beats import CHILD, ChildReport, HeartbeatWatch, now_ms
from controlplane.processes.runtime.children import ChildSpec
from controlplane.processes.runtime.errors import RunError, Stopped, how_it_ended
from controlplane.wire.errors import cause_line

MAX_BYTES: Final = 20_000_000
TAIL_BYTES: Final = 64_000
_ALARM: Final = re.compile(r"(?:^|[\s\[])(WARN|WARNING|ERROR|CRITICAL|FATAL)(?=[\s\]:]|$)")


def rotate(log: Path, limit: int = MAX_BYTES) -> None:
    """Copy a log over `limit` bytes to `<name>.1` and truncate it, as its writer has it open."""
    if log.exists() and log.stat().st_size > limit:
        shutil.copyfile(log, log.with_name(f"{log.name}.1"))
        with log.open("r+b") as file:
            file.truncate(0)


def tail(log: Path, lines: int = 12, start: int = 0) -> list[str]:
    """Return the last non-blank lines of a log, none from before byte `start`."""
    if not log.exists():
        return []
    size = log.stat().st_size
    with log.open("rb") as file:
        file.seek(max(min(start, size), size - TAIL_BYTES))
        text = file.read().decode("utf-8", "replace")
    return [line.rstrip() for line in text.splitlines() if line.strip()][-lines:]


def last_error(log: Path, start: int = 0) -> str:
    """Return the line with the cause of an error, else the last line, else ""."""
    return cause_line(tail(log, 400, start))


@dataclass(slots=True)
class Follower:
    """Reads the new lines of a log."""

    log: Path
    position: int = 0

    def skip(self) -> None:
        """Skip to the end."""
        self.position = self.log.stat().st_size if self.log.exists() else 0

    def alarms(self) -> list[str]:
        """Return the new whole lines with a warning or an error."""
        return [escaped(line) for line in self._new_lines() if _ALARM.search(line)]

    def _new_lines(self) -> list[str]:
        if not self.log.exists():
            return []
        if self.log.stat().st_size < self.position:
            self.position = 0
        with self.log.open("rb") as file:
            file.seek(self.position)
            whole, newline, _ = file.read(TAIL_BYTES * 4).rpartition(b"\n")
        self.position += len(whole) + len(newline)
        return whole.decode("utf-8", "replace").splitlines()


# Failures in a row are counted from 0 after a minute of running.
HEALTHY_S: Final = 60.0
# The pause before a restart while no process can work (s).
BLOCKED_S: Final = 10.0
# The interval of looks at the logs (s).
LOGS_S: Final = 1.0
# Each pause is shortened by up to this share, so that processes do not restart in step.
JITTER: Final = 0.25
# Warnings shown per child and minute; the log has them all.
SHOWN_PER_MINUTE: Final = 5
# The last lines and the advice are shown with this failure in a row, and no other.
EXPLAINED: Final = 4


@dataclass(slots=True)
class Child:
    """A process under supervision; `failures` counts its ends in a row."""

    spec: ChildSpec
    log: Path
    follower: Follower
    process: Process | None = None
    started_at: float = 0.0
    failures: int = 0
    ended: str = ""
    due_at: float = 0.0
    shown: list[float] = field(default_factory=list)

    @property
    def pid(self) -> int | None:
        """The process id, while it runs."""
        return self.process.pid if self.process else None

    @property
    def is_running(self) -> bool:
        """Return whether the process has not ended."""
        return self.process is not None and self.process.poll() is None


def restart_pause(failures: int, longest_s: float, fraction: float) -> float:
    """Return the pause before a restart (s): 1 s, doubled with each failure up to `longest_s`.

    `fraction` from 0 to 1 selects the jitter.
    """
    whole = min(2.0 ** min(failures - 1, 20), longest_s)
    return whole * (1 - JITTER * fraction)


class Supervisor:
    """Starts children, restarts them with back-off, forwards their warnings, stops all.

    `stopping` returns True once the stop is requested, which ends every wait. `blocked` returns
    why no process can work, such as a full disk; failures are not counted then. `watch` publishes
    the state of the children and identifies those that hang.
    """

    def __init__(
        self,
        logs: Path,
        env: Mapping[str, str],
        say: Callable[[str], None],
        stopping: Callable[[], bool] = lambda: False,
        blocked: Callable[[], str] = lambda: "",
        watch: HeartbeatWatch | None = None,
    ) -> None:
        self.children: dict[str, Child] = {}
        self.env = dict(env)
        self._logs = logs
        self._say = say
        self._stopping = stopping
        self._blocked = blocked
        self._watch = watch
        # Starts a child; by default as a program of its own.
        self.launch: Callable[..., Process] = spawn
        self._read_at = float("-inf")
        self._step: subprocess.Popen[bytes] | None = None
        # Descendants from before the start are not stopped.
        self._strangers = {process.pid for process in trees.descendants()}

    def start(self, spec: ChildSpec) -> None:
        """Start a child and supervise it."""
        log = self._logs / f"{spec.name}.log"
        rotate(log)
        child = Child(spec, log, Follower(log))
        child.follower.skip()
        self.children[spec.name] = child
        self._launch(child)

    def run_step(self, spec: ChildSpec) -> None:
        """Run a command to its end while supervising the children.

        Raises `RunError` if it fails, `Stopped` if the stop was requested.
        """
        log = self._logs / f"{spec.name}.log"
        rotate(log)
        start = log.stat().st_size if log.exists() else 0
        process = spawn(spec.command, self.env, log)
        self._step = process
        while process.poll() is None:
            self.tick()
            self.pause(0.05)
        self._step = None
        if process.returncode:
            lines = _indented(tail(log, start=start))
            what = f"{spec.name} ended with code {process.returncode}"
            raise RunError(f"{what}:\n{lines}", spec.advice)

    def pause(self, seconds: float) -> None:
        """Wait; raise `Stopped` if the stop was requested."""
        if self._stopping():
            raise Stopped
        time.sleep(seconds)

    def tick(self) -> None:
        """Supervise every child once."""
        now = time.monotonic()
        reads_logs = now - self._read_at >= LOGS_S
        for child in list(self.children.values()):
            if reads_logs:
                self._read_at = now
                self._forward_alarms(child, now)
                rotate(child.log)
            self._look_after(child, now)
        step = [self._step.pid] if self._step else []
        if self._watch is not None:
            self._watch.step(self.reports())
        own = [child.pid for child in self.children.values() if child.pid]
        trees.reap_adopted([*step, *own])

    def reports(self) -> list[ChildReport]:
        """Return the state of every child."""
        now, at_ms = time.monotonic(), now_ms()
        return [
            ChildReport(
                child.spec.name, child.failures, child.ended,
                0 if child.is_running else at_ms + max(1, round((child.due_at - now) * 1000)),
            )
            for child in self.children.values()
        ]  # fmt: skip

    def failure(self, name: str) -> RunError:
        """Return the error of a child that Weir cannot start without."""
        child = self.children[name]
        text = f"{name} {child.ended}, {child.failures} times in a row"
        advice = f"{child.spec.advice}\nwhole log: {child.log}"
        return RunError(f"{text}:\n{_indented(tail(child.log))}", advice)

    def end_all(self, hurry: Callable[[], bool] = lambda: False) -> bool:
        """Stop every process, Redis after all others; return True if all have ended.

        `hurry` (a second Ctrl-C) skips the graceful stop.
        """
        last = [child for child in self.children.values() if child.spec.name == "redis"]
        self._end([child for child in self.children.values() if child not in last], hurry)
        self._kill_strays(keep={child.pid for child in last if child.pid})
        self._end(last, hurry)
        is_clean = self._kill_strays(keep=set())
        self.children.clear()
        return is_clean

    def _launch(self, child: Child) -> None:
        spec, env = child.spec, {**self.env, CHILD: child.spec.name}
        child.started_at = time.monotonic()
        try:
            child.process = self.launch(spec.command, env, child.log, spec.inherited)
        except OSError as error:
            # Out of processes, memory or descriptors: tried again as after a failure.
            self._note_failure(child, f"cannot be started: {error}", child.started_at)

    def _look_after(self, child: Child, now: float) -> None:
        if child.process is None:
            if now >= child.due_at:
                self._launch(child)
        elif (code := child.process.poll()) is not None:
            self._note_failure(child, how_it_ended(code), now)
        elif self._watch and self._watch.is_hung(child.spec, now - child.started_at):
            self._say(f"{child.spec.name} writes no heartbeat; killing it")
            child.process.kill()
        elif child.failures and now - child.started_at > HEALTHY_S:
            child.failures = 0

    def _note_failure(self, child: Child, ended: str, now: float) -> None:
        child.process, child.ended = None, ended
        child.failures += 1
        name, why = child.spec.name, self._blocked()
        if why:
            child.failures = 1
        fraction = random.random()  # noqa: S311 - jitter, no secret
        pause = restart_pause(child.failures, child.spec.longest_pause_s, fraction)
        pause = BLOCKED_S if why else pause
        child.due_at = now + pause
        text = f"{ended}, as {why}" if why else ended
        self._say(f"{name} {text}; starting it again in {pause:.1f} s ({child.log})")
        if child.failures == EXPLAINED:
            failure = self.failure(name)
            self._say(f"{failure}\nwhat to do: {failure.advice}")

    def _forward_alarms(self, child: Child, now: float) -> None:
        child.shown = [log_line for log_line in child.shown if now - log_line < HEALTHY_S]
        for line in child.follower.alarms():
            if child.spec.is_shown and len(child.shown) < SHOWN_PER_MINUTE:
                self._say(f"{child.spec.name:>8} | {line[:300]}")
                child.shown.append(now)

    def _end(self, children: list[Child], hurry: Callable[[], bool]) -> None:
        running = [child for child in children if child.is_running]
        for child in running:
            _signal(child, signal.SIGTERM)
        started = time.monotonic()
        while running and not hurry():
            time.sleep(0.05)
            waited = time.monotonic() - started
            running = [c for c in running if c.is_running and waited < c.spec.patience_s]
        for child in children:
            _signal(child, signal.SIGKILL)

    def _kill_strays(self, keep: set[int]) -> bool:
        spared = keep | self._strangers
        return trees.kill_all(lambda: [p for p in trees.descendants() if p.pid not in spared])


def _indented(lines: list[str]) -> str:
    return "\n".join(f"    {line}" for line in lines)


def _signal(child: Child, number: signal.Signals) -> None:
    """Signal a child; its descendants follow it or are killed afterwards."""
    if child.process is not None:
        child.process.send_signal(number)
