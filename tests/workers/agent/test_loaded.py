"""Drivers are forked from a loaded process of the agent, and start without it as programs."""

import subprocess
import sys
from pathlib import Path

# The agent: it starts drivers, then without the loaded process, then where it cannot start again.
AGENT = """
import os, shutil, subprocess, sys, time
from pathlib import Path
import psutil
from workers.agent import loaded
loaded.MODULE = "decimal"
folder = Path(sys.argv[1])
agent = loaded.Loaded(os.environ, folder / "loaded.log")

def start_driver():
    child = agent.start((sys.executable, "-m", "this"), os.environ, folder / "driver.log")
    while child.poll() is None:
        time.sleep(0.01)
    print(type(child).__name__, child.returncode, flush=True)

start_driver()
server = agent._preloaded.process
server.kill()
subprocess.run(["sh", "-c", "sleep 0.1 &"], check=True)
while psutil.Process().children():
    agent.reap_orphans()
    time.sleep(0.01)
start_driver()
agent._preloaded.process.kill()
agent._preloaded.process.wait()
shutil.rmtree(Path(agent._preloaded.path).parent)
descriptors = len(os.listdir("/proc/self/fd"))
start_driver()
print(len(os.listdir("/proc/self/fd")) - descriptors)
"""


def test_drivers_start_with_and_without_the_loaded_process(tmp_path: Path) -> None:
    """Its orphans are collected after its end, and it starts again where it can."""
    command = [sys.executable, "-c", AGENT, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["Adopted 0", "Adopted 0", "Popen 0", "0"]
