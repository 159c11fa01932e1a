"""Batches without a cluster: Java loads and compiles what those of every cluster need.

Source, nodes and sink are as those of the pipeline, with a row per node in place of records, and
without Redis.
"""

from collections.abc import Iterator
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.datasource import (
    DataSource,
    DataSourceStreamArrowWriter,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    InputPartition,
    WriterCommitMessage,
)
from pyspark.sql.streaming.stateful_processor import (
    StatefulProcessor,
    StatefulProcessorHandle,
    TimerValues,
)
from pyspark.sql.types import StructType

from workers.pipeline.application import evaluated
from workers.pipeline.exchange.envelope import ROUTED_DDL
from workers.pipeline.exchange.output import OUTPUT_DDL, REPORT
from workers.pipeline.nodes.state_store import NodeStore, open_state
from workers.pipeline.spark.partition_keys import node_keys

if TYPE_CHECKING:
    import pandas as pd

PARTITIONS: Final = 2
# The first batch loads classes; Java compiles what the next ones call again.
_BATCHES: Final = 3
_COLUMNS: Final = tuple(column.split()[0] for column in OUTPUT_DDL.split(", "))


class _Log(DataSource):
    @classmethod
    def name(cls) -> str:
        return "rehearsal_log"

    def schema(self) -> str:
        return ROUTED_DDL

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
        return _LogReader()


class _LogReader(DataSourceStreamReader):
    """Its offsets are numbers of batches."""

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's name
        return {"batch": 0}

    def latestOffset(self, start: dict[str, Any], limit: object) -> dict[str, Any]:  # noqa: N802
        return {"batch": min(start["batch"] + 1, _BATCHES)}

    def partitions(self, start: object, end: object) -> list[InputPartition]:
        return [InputPartition(node) for node in range(PARTITIONS)]

    def read(self, partition: InputPartition) -> Iterator[tuple[int, str, bytes]]:
        yield node_keys(PARTITIONS).key_of(partition.value), "", b""


class _Node(StatefulProcessor):
    def init(self, handle: StatefulProcessorHandle) -> None:
        self._values = open_state(handle)

    def handleInputRows(  # type: ignore[override]  # noqa: N802 - Spark's name
        self,
        key: Any,
        rows: "Iterator[pd.DataFrame]",
        timerValues: TimerValues,  # noqa: N803
    ) -> "Iterator[pd.DataFrame]":
        import pandas as pd  # noqa: PLC0415 - late, as in the nodes

        store = NodeStore(self._values)
        before = store.get("rows") or b""
        store.put("rows", before + bytes(sum(map(len, rows))))
        store.save()
        yield pd.DataFrame([(int(key[0]), 0, REPORT, before, False)], columns=_COLUMNS)


class _Sink(DataSource):
    @classmethod
    def name(cls) -> str:
        return "rehearsal_sink"

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802
        return _SinkWriter()


class _SinkWriter(DataSourceStreamArrowWriter):
    # Spark's own subclass narrows the argument in the same way, without a type for it.
    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:  # type: ignore[override]
        for rows in iterator:
            rows.to_pylist()
        return WriterCommitMessage()


def rehearse(spark: SparkSession) -> None:
    """Run batches in a session with `PARTITIONS` partitions."""
    spark.dataSource.register(_Log)
    spark.dataSource.register(_Sink)
    log = spark.readStream.format(_Log.name()).load()
    with TemporaryDirectory(prefix="weir-rehearsal-") as folder:
        query = (
            evaluated(log, _Node())
            .writeStream.format(_Sink.name())
            .option("checkpointLocation", folder)
            .outputMode("append")
            .trigger(processingTime="0 seconds")
            .start()
        )
        query.processAllAvailable()
        query.stop()
