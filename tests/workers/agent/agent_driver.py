"""A stand-in for the Spark application: beats in Redis, has a child, obeys a file.

python tests/workers/agent/agent_driver.py <redis url> <cluster> <folder>

Appends its process id to <folder>/started. Then, as often as it beats, it looks for files in the
folder: `die` (end with an error), `mute` (beat no more, and say so in `muted`), `deaf` (ignore
SIGTERM), `jvm` (its text is when the JVM last answered, in ms).
"""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import redis

from controlplane.wire.keys import driver_key


def main() -> None:
    """Run until told otherwise."""
    url, cluster, folder = sys.argv[1], sys.argv[2], Path(sys.argv[3])
    if (folder / "deaf").exists():
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    # Like the JVM: in a session of its own, and it would outlive us.
    subprocess.Popen(["sleep", "600"], start_new_session=True)
    client = redis.Redis.from_url(url)
    started = os.open(folder / "started", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.write(started, f"{os.getpid()}\n".encode())
    while not (folder / "die").exists():
        if (folder / "mute").exists():
            (folder / "muted").touch()
        else:
            beat(client, cluster, folder / "jvm")
        time.sleep(0.02)
    (folder / "die").unlink()
    raise ValueError("the state store is gone")


def beat(client: "redis.Redis", cluster: str, jvm: Path) -> None:
    """Write what a running driver writes."""
    beat_ms = time.time_ns() // 1_000_000
    key = driver_key(cluster)
    client.hset(key, "pid", str(os.getpid()))
    client.hset(key, "state", "running")
    if jvm.exists():
        client.hset(key, "jvm_ms", jvm.read_text() or "0")
    client.hset(key, "beat_ms", str(beat_ms))


if __name__ == "__main__":
    main()
