"""Somebody's PySpark job: a stateful query over made-up rows, and two lines that attach it.

`python job.py <url> <token> <lines>` prints one JSON line when its own work is done.
"""

import json
import sys
import time
from typing import Any

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's custom

from workers.attach import task_summary

BATCHES = 3
KEYED_BATCHES = 10
# The tests do not wait 30 s for each look.
task_summary.EVERY_SECONDS = 0.0  # type: ignore[misc]
# Spark's first batches on a busy machine, with room.
PATIENCE_SECONDS = 120.0


def session() -> SparkSession:
    builder = SparkSession.builder.master("local[1]").appName("somebody's job")
    for name, value in {
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": "512m",
        "spark.log.level": "ERROR",
        # A job of seconds: compiling its code well would take longer than running it.
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "spark.sql.codegen.wholeStage": "false",
    }.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def counts(spark: SparkSession) -> Any:
    """Start the job's query: rows per key, kept in state."""
    rows = spark.readStream.format("rate").option("rowsPerSecond", 50).load()
    grouped = rows.groupBy((F.col("value") % 5).alias("key")).count()
    writer = grouped.writeStream.queryName("rows per key").format("noop").outputMode("update")
    return writer.trigger(processingTime="300 milliseconds").start()


def keyed(spark: SparkSession) -> Any:
    """Start a query in four partitions by key, of which one has seven of ten rows.

    A row costs a tenth of a millisecond or more, so that this one takes longest.
    """
    rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 4000).load()
    value = F.col("value")
    key = F.when(value % 10 < 7, 0).otherwise(value)
    work = F.sha2(F.repeat(value.cast("string"), 3000), 512)
    hashed = rows.repartition(4, key).select(work)
    return hashed.writeStream.queryName("one hot key").format("noop").start()


def wait_for(query: Any, batches: int) -> None:
    """Wait for batches of a query."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not query.lastProgress or query.lastProgress["batchId"] < batches:
        assert query.isActive, query.exception()
        assert time.monotonic() < deadline, "no batch"
        query.awaitTermination(1)


def broken(spark: SparkSession) -> str:
    """Run a query that fails and return what its job is told."""

    def fail(_: DataFrame, batch: int) -> None:
        raise ValueError(f"batch {batch} is not to my taste")

    rows = spark.readStream.format("rate").load()
    query = rows.writeStream.queryName("broken").foreachBatch(fail).start()
    try:
        query.awaitTermination()
    except StreamingQueryException as failure:
        return str(failure)
    return ""


def main(url: str, token: str, lines: str) -> None:
    spark = session()
    # As in a notebook, whose cell is run twice.
    for _ in range(2):
        exec(lines.replace("https://weir.example", url), {"spark": spark, "token": token})
    query = counts(spark)
    wait_for(query, BATCHES)
    done = {
        "application": spark.sparkContext.applicationId,
        "run": str(query.runId),
        "batches": query.lastProgress["batchId"],
        "state_rows": query.lastProgress["stateOperators"][0]["numRowsTotal"],
    }
    query.stop()
    rows = keyed(spark)
    wait_for(rows, KEYED_BATCHES)
    rows.stop()
    failure = broken(spark)
    spark.stop()
    done |= {"failure": "not to my taste" in failure, "done_at": time.time()}
    print(json.dumps(done), flush=True)  # noqa: T201


if __name__ == "__main__":
    main(*sys.argv[1:])
