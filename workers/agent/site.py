"""The Spark master of this machine's drivers, from the environment."""

import logging
import os
import shlex
from pathlib import Path

from controlplane import env
from controlplane.runtime.java import find_java
from workers.agent.driver import Site

logger = logging.getLogger("weir.agent")


def site_of(data: Path) -> Site:
    """Create a data directory and return its site. Raises `CheckFailed` without Java."""
    data.mkdir(parents=True, exist_ok=True, mode=0o700)
    java = find_java(os.environ, data / "java", logger.warning)
    checkpoints = env.text("WEIR_CHECKPOINTS")
    # Checked here, where errors are visible; the drivers' workers inherit them.
    env.integer("WEIR_CALL_SECONDS", 10, 1, 3_600)
    env.integer("WEIR_WORKER_MEMORY_MB", 2_048, 256)
    return Site(
        data,
        env.redis_url(),
        {"JAVA_HOME": str(java.home)},
        Path(checkpoints).expanduser().resolve() if checkpoints else None,
        env.text("WEIR_DRIVER_HOST"),
        tuple(shlex.split(env.text("WEIR_SPARK_CONF"))),
    )
