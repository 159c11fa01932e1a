"""The process from which all Python processes of Spark on this machine are forked.

Spark starts a Python process for each kind of work: planning, reading, writing, committing, tasks.
Each would import pandas, Arrow and this pipeline for itself, one after another: most of the time of
a start, and a hundred megabytes each. Here they share both. Spark starts `forked.py`, which passes
its standard streams and arguments to this server and lives as long as the forked process. What is
loaded is out of the garbage collector's sight, which Spark calls in full after every task.
"""

import ctypes
import fcntl
import gc
import importlib
import json
import os
import runpy
import signal
import socket
import sys
from contextlib import suppress
from typing import Final

# What Spark's processes load, and this pipeline.
_LOADED: Final = (
    "pandas", "pyspark.worker", "pyspark.sql.pandas.serializers", "pyspark.sql.worker.utils",
    "pyspark.sql.streaming.stateful_processor_util", "pyspark.sql.worker.plan_data_source_read",
    "pyspark.sql.worker.python_streaming_sink_runner", "workers.pipeline.application",
    "workers.pipeline.nodes.node_batch",
)  # fmt: skip
# Linux: the call that names a process, and the setting of a descriptor's signal.
_PR_SET_NAME: Final = 15
_F_SETSIG: Final = 10


def _end_with(descriptor: int) -> None:
    """Let the kernel send SIGTERM to this process when the other end of a descriptor is closed."""
    fcntl.fcntl(descriptor, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(descriptor, _F_SETSIG, signal.SIGTERM)
    flags = fcntl.fcntl(descriptor, fcntl.F_GETFL)
    fcntl.fcntl(descriptor, fcntl.F_SETFL, flags | os.O_ASYNC)


def _fork(listener: socket.socket, connection: socket.socket) -> None:
    """Fork the process that a connection requests."""
    data, streams, _, _ = socket.recv_fds(connection, 4, 3)
    with connection.makefile("rb") as file:
        arguments, environment = json.loads(file.read(int.from_bytes(data)))
    if os.fork():
        for stream in streams:
            os.close(stream)
        return
    listener.close()
    for ignored in (signal.SIGCHLD, signal.SIGTERM):
        signal.signal(ignored, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    _end_with(connection.detach())
    ctypes.CDLL(None).prctl(_PR_SET_NAME, arguments[-1][-15:].encode())
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = arguments
    sys.modules.pop(arguments[0], None)
    runpy.run_module(arguments[0], run_name="__main__", alter_sys=True)
    sys.exit()


def main() -> None:
    """Listen, load all modules, then fork until the driver, which holds standard input, ends."""
    # Ended by the driver, not by a terminal; the kernel removes ended children.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    _end_with(sys.stdin.fileno())
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(sys.argv[1])
        listener.listen(64)
        for name in _LOADED:
            importlib.import_module(name)
        gc.collect()
        gc.freeze()
        while True:
            with listener.accept()[0] as connection, suppress(OSError, ValueError):
                # Of a request whose sender was killed, there is only a part.
                _fork(listener, connection)


if __name__ == "__main__":
    main()
