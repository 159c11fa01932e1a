"""The one streaming query of a cluster: log -> envelopes -> nodes -> sink."""

from dataclasses import dataclass

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from workers.pipeline.processor import NodeProcessor
from workers.pipeline.row import OUTPUT_DDL
from workers.pipeline.sink import WeirSink
from workers.pipeline.source import WeirLog


@dataclass(frozen=True)
class Application:
    """What one cluster's application is started with; `log_url` is empty for a log in Redis."""

    cluster: str
    redis_url: str
    checkpoint: str
    slots: int
    splits: int
    trigger_ms: int = 1000
    max_records: int = 200_000
    log_url: str = ""


def start(spark: SparkSession, application: Application) -> StreamingQuery:
    """Start the streaming query; it goes on from the checkpoint where there is one."""
    spark.dataSource.register(WeirLog)
    spark.dataSource.register(WeirSink)
    place = {"cluster": application.cluster, "redis_url": application.redis_url}
    routed = (
        spark.readStream.format("weir_log")
        .options(**place)
        .option("slots", application.slots)
        .option("splits", application.splits)
        .option("max_records", application.max_records)
        .option("log_url", application.log_url)
        .load()
    )
    processor = NodeProcessor(application.cluster, application.redis_url, application.slots)
    evaluated = routed.groupBy("nk").transformWithStateInPandas(
        statefulProcessor=processor,
        outputStructType=OUTPUT_DDL,
        outputMode="Append",
        timeMode="None",
    )
    return (
        evaluated.writeStream.format("weir_sink")
        .queryName(f"weir_{application.cluster}".replace("-", "_"))
        .options(**place)
        .option("checkpointLocation", application.checkpoint)
        .outputMode("append")
        .trigger(processingTime=f"{application.trigger_ms} milliseconds")
        .start()
    )
