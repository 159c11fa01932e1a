"""Compile the bytecode of everything that Weir's processes import, once: `make install` runs it.

uv leaves packages uncompiled. Nine processes that start together would each compile the same
modules, which takes the first start a minute on two slow cores; one import takes seconds.
"""

import os
import tempfile
from importlib import import_module
from typing import Final

# By their text, as this package imports none of them. Settings come first.
_MODULES: Final = (
    "controlplane.asgi",
    "workers.tasks",
    "workers.relay",
    "workers.agent.__main__",
    "workers.demo.replay",
    "workers.pipeline.__main__",
    "workers.pipeline.daemon",
    "pyspark.daemon",
    "pyspark.worker",
    "pyspark.sql.worker.plan_data_source_read",
    "pyspark.sql.worker.write_into_data_source",
    "pyspark.sql.worker.python_streaming_sink_runner",
    "pyspark.sql.streaming.python_streaming_source_runner",
)


def main() -> None:
    """Import what the processes import, with a data directory that is thrown away."""
    with tempfile.TemporaryDirectory(prefix="weir-") as data:
        os.environ |= {"WEIR_DATA": data, "DJANGO_SETTINGS_MODULE": "controlplane.settings"}
        for name in _MODULES:
            import_module(name)


if __name__ == "__main__":
    main()
