"""The Spark session of a cluster, tuned for many small micro-batches."""

import os
import sys

from pyspark.sql import SparkSession

_COMMIT_MANAGER = (
    "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
)
_ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


def session(cluster: str, slots: int, master: str = "local[2]") -> SparkSession:
    """Return a session whose stateful operators have `slots` partitions."""
    # Workers must find the packages that this driver has.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    settings = {
        "spark.sql.shuffle.partitions": str(slots),
        "spark.default.parallelism": str(slots),
        "spark.ui.enabled": "false",
        "spark.driver.memory": "1g",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.adaptive.enabled": "false",
        # Shuffle files of tiny batches are not worth compressing.
        "spark.shuffle.compress": "false",
        "spark.python.worker.reuse": "true",
        "spark.sql.streaming.stateStore.providerClass": _ROCKSDB,
        "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
        # A rename of a written file instead of a create-and-verify: ten times faster commits.
        "spark.sql.streaming.checkpointFileManagerClass": _COMMIT_MANAGER,
        "spark.sql.streaming.checkpoint.fileChecksum.enabled": "false",
        "spark.sql.streaming.minBatchesToRetain": "16",
        "spark.sql.streaming.metricsEnabled": "false",
        # Batches run when there is input; an idle cluster writes nothing.
        "spark.sql.streaming.noDataMicroBatches.enabled": "false",
        "spark.log.level": "WARN",
    }
    builder = SparkSession.builder.master(master).appName(f"weir-{cluster}")
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()
