"""The process from which Spark forks its Python workers, with everything loaded that they need.

Spark's own starts empty, so that each of a dozen workers imports pandas, Arrow and this pipeline
for itself: seconds of a start, and a hundred megabytes each. Forked from here they share both. What
is loaded is out of the garbage collector's sight, which Spark calls in full after every task.
"""

import gc
import importlib
from typing import Final

from pyspark import daemon

# What workers load at their first task: Spark's own, and this pipeline.
_LOADED: Final = (
    "pandas",
    "pyspark.worker",
    "pyspark.sql.pandas.serializers",
    "pyspark.sql.streaming.stateful_processor_util",
    "pyspark.sql.worker.plan_data_source_read",
    "pyspark.sql.worker.python_streaming_sink_runner",
    "workers.pipeline.application",
    "workers.pipeline.nodes.node_batch",
)


def main() -> None:
    """Serve forks until Spark closes standard input."""
    for name in _LOADED:
        importlib.import_module(name)
    gc.collect()
    gc.freeze()
    daemon.manager()


if __name__ == "__main__":
    main()
