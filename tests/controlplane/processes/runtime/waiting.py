"""Waiting for a condition, and small programs to run as children."""

import time
from collections.abc import Callable
from pathlib import Path

import psutil

# Writes its id as it is ready, then takes no notice of SIGTERM. The file is there with its content:
# who waits for it may end the process at once.
STUBBORN = """
import os, pathlib, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
draft = pathlib.Path(sys.argv[1] + ".draft")
draft.write_text(str(os.getpid()))
draft.rename(sys.argv[1])
time.sleep(600)
"""

# Starts a stubborn child in a session of its own, then waits.
PARENT_OF_STUBBORN = f"""
import subprocess, sys, time
subprocess.Popen([sys.executable, "-c", {STUBBORN!r}, sys.argv[1]], start_new_session=True)
time.sleep(600)
"""


def wait_for(what: Callable[[], bool], seconds: float = 20.0) -> None:
    """Return once `what` holds; fail after `seconds`."""
    deadline = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)


def pid_in(file: Path) -> int:
    """Return the process id that a child writes into `file`, waiting for it."""
    wait_for(lambda: file.exists() and file.read_text() != "")
    return int(file.read_text())


def is_gone(pid: int) -> bool:
    """Return whether no living process has this id."""
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True
