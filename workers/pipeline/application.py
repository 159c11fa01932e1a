"""The one streaming query of a cluster: log -> envelopes -> nodes -> sink."""

import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.readwriter import DataStreamWriter
from pyspark.sql.streaming.stateful_processor import StatefulProcessor

from workers.pipeline.checkpoints.bootstrap import Bootstrap, kept_start, read_bootstrap
from workers.pipeline.exchange.output import OUTPUT_DDL
from workers.pipeline.nodes.processor import NodeProcessor
from workers.pipeline.sink import WeirSink
from workers.pipeline.spark.session import memory_of
from workers.pipeline.split_nodes.batch_size import batch_budget
from workers.pipeline.split_nodes.source import LogReader, WeirLog


@dataclass(frozen=True)
class Application:
    """What one cluster's application is started with.

    `partitions`: Spark's, which must be those of the checkpoint; `nodes`: how many there are in a
    routing table without it; `log_url`: empty for a log in Redis. `max_records`,
    `max_bytes`: of the log, in one batch.
    """

    cluster: str
    redis_url: str
    checkpoint: str
    partitions: int
    nodes: int
    splits: int
    trigger_ms: int = 1000
    max_records: int = 200_000
    log_url: str = ""
    max_bytes: int = 64 << 20
    results_url: str = ""


def prepare(
    spark: SparkSession, application: Application, *, once: bool = False
) -> DataStreamWriter:
    """Return the streaming query, which continues from an existing checkpoint at each start.

    `once`: run one batch only, the unfinished one if there is any. Raises `WrongPartitions`.
    """
    bootstrap = read_bootstrap(Path(application.checkpoint), application.partitions)
    period = f"{application.trigger_ms} milliseconds"
    trigger: dict[str, Any] = {"once": True} if once else {"processingTime": period}
    spark.dataSource.register(WeirLog)
    spark.dataSource.register(WeirSink)
    processor = NodeProcessor(
        application.cluster, application.redis_url, application.partitions, bootstrap
    )
    return (
        evaluated(_read_log(spark, application, bootstrap), processor)
        .writeStream.format("weir_sink")
        .queryName(f"weir_{application.cluster}".replace("-", "_"))
        .options(
            cluster=application.cluster,
            redis_url=application.redis_url,
            results_url=application.results_url,
        )
        .option("checkpointLocation", application.checkpoint)
        .outputMode("append")
        .trigger(**trigger)
    )


def evaluated(log: DataFrame, processor: StatefulProcessor) -> DataFrame:
    """Return what the nodes' processor makes of a stream of envelopes."""
    return log.groupBy("nk").transformWithStateInPandas(
        statefulProcessor=processor,
        outputStructType=OUTPUT_DDL,
        outputMode="Append",
        timeMode="None",
    )


def _read_log(
    spark: SparkSession, application: Application, bootstrap: Bootstrap | None
) -> DataFrame:
    """Return the stream of envelopes for nodes: one row per split node and node."""
    reader = LogReader(
        application.cluster, application.redis_url, application.partitions, application.nodes,
        application.splits, application.max_records, application.max_bytes,
        batch_budget(memory_of(spark)), application.log_url,
    )  # fmt: skip
    checkpoint = Path(application.checkpoint)
    own = json.dumps(bootstrap.offset) if bootstrap else ""
    reader = replace(reader, seed=own or kept_start(checkpoint, reader.initialOffset))
    return spark.readStream.format("weir_log").option("reader", json.dumps(asdict(reader))).load()
