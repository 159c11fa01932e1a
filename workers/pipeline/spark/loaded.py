"""What drivers and the Python processes of Spark load: they are forked from a process that has.

Spark starts a Python process for each kind of work: planning, reading, writing, committing, tasks.
Each would import pandas, Arrow and this pipeline for itself, one after another: most of the time of
a start, and a hundred megabytes each. What is loaded is out of the garbage collector's sight, which
Spark calls in full after every task.
"""

from importlib import import_module
from typing import Final

MODULES: Final = (
    "pandas", "pyspark.worker", "pyspark.sql.pandas.serializers", "pyspark.sql.worker.utils",
    "pyspark.sql.streaming.stateful_processor_util", "pyspark.sql.worker.plan_data_source_read",
    "pyspark.sql.worker.python_streaming_sink_runner", "workers.pipeline.application",
    "workers.pipeline.nodes.node_batch", "workers.pipeline.rehearsal",
    "workers.pipeline.reports.heartbeat", "workers.pipeline.spark.query_runs",
    "workers.pipeline.surroundings",
)  # fmt: skip

for name in MODULES:
    import_module(name)
