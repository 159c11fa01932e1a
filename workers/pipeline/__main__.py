"""Run the Spark application of one cluster: `python -m workers.pipeline --cluster sf …`.

Environment: REDIS_URL; WEIR_RESULTS_URL (the database of results: postgresql://… or sqlite:////…);
WEIR_LOG_URL (redis://… or kafka://…; default: that Redis); WEIR_SPARK_CONF (settings of Spark as
"name=value name=value", which take precedence over Weir's own).
"""

import argparse
import logging
import signal
import sys
import threading
from importlib import import_module
from pathlib import Path
from threading import Thread
from typing import Final

from controlplane.formats.log_lines import write_log_to_stderr
from controlplane.wire.errors import cause_line
from controlplane.wire.log.address import check_destination
from controlplane.wire.redis_clients import connect_patiently
from workers.pipeline.checkpoints.files import (
    AlreadyRunning,
    exclusive_lock,
    existing_partitions,
    finish_swap,
)
from workers.pipeline.reports.heartbeat import DriverHeartbeat, ProgressListener
from workers.pipeline.spark.partition_keys import partition_warning, partitions_for
from workers.pipeline.spark.query_runs import QueryRuns
from workers.pipeline.spark.session import SparkSettings, session
from workers.pipeline.surroundings import SettingMissing, Surroundings, surroundings

logger = logging.getLogger("weir.pipeline")

# A driver on another host ends within this time after Redis has shut it out, and a network file
# system frees the locks of a host that died; the agent kills a silent driver after a minute.
LOCK_S: Final = 45.0


def main(arguments: list[str] | None = None) -> int:
    """Run until stopped; return 0 after a stop, 1 after a failure."""
    options = _parse(arguments)
    write_log_to_stderr()
    try:
        with exclusive_lock(Path(options.checkpoint), LOCK_S):
            finish_swap(Path(options.checkpoint))
            given = surroundings()
            engine = SparkSettings(options.master, options.driver_host, given.spark_conf)
            return _run(options, given, engine)
    except (AlreadyRunning, SettingMissing) as error:
        logger.error("%s", error)
        return 1


def _run(options: argparse.Namespace, given: Surroundings, engine: SparkSettings) -> int:
    wanted = partitions_for(options.master, options.partitions, options.nodes)
    there = existing_partitions(Path(options.checkpoint))
    client = connect_patiently(given.redis_url)
    stop = threading.Event()
    for name in (signal.SIGTERM, signal.SIGINT):
        signal.signal(name, lambda *_: stop.set())
    with DriverHeartbeat(client, options.cluster) as heartbeat:
        if note := partition_warning(there, wanted):
            logger.warning("%s", note)
            heartbeat.update(note=note)
        try:
            if given.log_url:
                # Before Spark starts: the site may allow less than when the URL was given.
                check_destination(given.log_url)
            # Pandas and Arrow take seconds on a busy machine, during the start of the JVM.
            loading = Thread(target=import_module, args=("workers.pipeline.application",))
            loading.start()
            spark = session(options.cluster, there or wanted, engine)
            loading.join()
            from workers.pipeline.application import Application, prepare  # noqa: PLC0415

            application = Application(
                options.cluster, given.redis_url, options.checkpoint, there or wanted,
                options.nodes, options.splits, options.trigger_ms, options.max_records,
                given.log_url, options.max_batch_mb << 20, given.results_url,
            )  # fmt: skip
            spark.streams.addListener(ProgressListener(client, options.cluster, heartbeat))
            runs = QueryRuns(prepare(spark, application).start)
            heartbeat.watch_jvm(lambda: str(runs.query.status["message"]))
            error = runs.wait(stop)
        except Exception as problem:  # noqa: BLE001 - whatever ends the driver is reported
            error = problem
        if error is None:
            heartbeat.update(state="stopped")
            return 0
        logger.error("the application failed", exc_info=error)
        heartbeat.update(state="failed", error=_last_line(error))
        return 1


def _last_line(error: Exception) -> str:
    lines = [line for line in str(error).splitlines() if line.strip()]
    return cause_line(lines or [type(error).__name__])[:500]


def _parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="workers.pipeline", description=__doc__)
    parser.add_argument("--cluster", required=True)
    parser.add_argument("--checkpoint", required=True)
    parser.add_argument(
        "--nodes", type=int, required=True, help="for routing tables without the number of nodes"
    )
    parser.add_argument(
        "--partitions",
        type=int,
        default=0,
        metavar="N",
        help="Spark partitions of a new checkpoint; default: the cores of a master local[n], "
        "elsewhere one for each node",
    )
    parser.add_argument("--splits", type=int, required=True)
    parser.add_argument("--trigger-ms", type=int, default=1000)
    parser.add_argument("--max-records", type=int, default=200_000, help="of a micro-batch")
    parser.add_argument("--max-batch-mb", type=int, default=64, help="MiB of a micro-batch")
    parser.add_argument("--master", default="local[2]", help="local[n], spark://, yarn or k8s://")
    parser.add_argument("--driver-host", default="", help="where executors reach this process")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
