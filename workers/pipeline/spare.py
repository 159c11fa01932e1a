"""A driver that waits for its cluster: `python -m workers.pipeline.spare DESCRIPTOR`.

It starts Java, rehearses, stops its Spark session and writes `READY` to the socket DESCRIPTOR. The
agent answers with one line of JSON: the arguments of a driver (`python -m workers.pipeline`), and
its variables, such as the URL of Redis, which no spare has. From then on the process is that
driver; Java is the same, the session is another one.
"""

import json
import logging
import os
import socket
import sys
from typing import Final

from controlplane.formats.log_lines import write_log_to_stderr
from workers.pipeline.__main__ import main as run_driver
from workers.pipeline.spark.session import SparkSettings, session
from workers.pipeline.surroundings import spark_settings

logger = logging.getLogger("weir.pipeline")

READY: Final = b"ready\n"


def main() -> int:
    """Return the exit code of the driver, 0 if the agent ended before there was one."""
    write_log_to_stderr()
    with socket.socket(fileno=int(sys.argv[1])) as agent, agent.makefile("rb") as orders:
        _prepare()
        logger.info("ready: this process waits for a cluster")
        agent.sendall(READY)
        order = orders.readline()
    # Of an agent that was killed there may be a part.
    if not order.endswith(b"\n"):
        return 0
    arguments, variables = json.loads(order)
    os.environ |= variables
    return run_driver(arguments)


def _prepare() -> None:
    """Start Java and leave it without a session, warm, with little memory."""
    spark = session("spare", 2, SparkSettings(conf=spark_settings(os.environ)))
    # PySpark and Arrow are imported while Java starts, as in a driver.
    from workers.pipeline.rehearsal import rehearse  # noqa: PLC0415

    rehearse(spark)
    java = spark.sparkContext._jvm  # noqa: SLF001 - PySpark has no function for it
    spark.stop()
    if java is not None:
        java.System.gc()


if __name__ == "__main__":
    sys.exit(main())
