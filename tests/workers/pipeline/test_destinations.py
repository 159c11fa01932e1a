"""A driver starts only with a log that the site still lists."""

import os
import subprocess
import sys
from pathlib import Path

import redis

from controlplane.wire.keys import driver_key


def test_a_driver_of_an_unlisted_log_ends_before_spark_starts(
    redis_server: str, redis_client: redis.Redis, tmp_path: Path
) -> None:
    """The list may have become shorter since the URL was given."""
    place = redis_server.rpartition("@")[2].removeprefix("redis://").partition("/")[0]
    given = {
        "REDIS_URL": redis_server, "WEIR_LOG_URL": "kafka://127.0.0.1:22/t",
        "WEIR_DESTINATIONS_LIST": f"redis://{place}", "JAVA_HOME": "/nowhere",
    }  # fmt: skip
    command = [
        sys.executable, "-m", "workers.pipeline", "--cluster", "sf", "--nodes", "1",
        "--splits", "1", "--checkpoint", str(tmp_path / "c"),
    ]  # fmt: skip
    ended = subprocess.run(command, env=os.environ | given, check=False, timeout=300)
    assert ended.returncode == 1
    heartbeat = redis_client.hgetall(driver_key("sf"))
    assert heartbeat[b"state"] == b"failed"
    assert b"kafka://127.0.0.1:22 is not in the list of the site" in heartbeat[b"error"]
    assert b"WEIR_DESTINATIONS" in heartbeat[b"error"]
