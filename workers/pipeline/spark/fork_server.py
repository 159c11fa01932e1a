"""The process from which all Python processes of Spark on this machine are forked.

Spark starts a Python process for each kind of work: planning, reading, writing, committing, tasks.
Each would import pandas, Arrow and this pipeline for itself, one after another: most of the time of
a start, and a hundred megabytes each. Here they share both. Spark starts `forked.py`, which passes
its standard streams and arguments to this server and lives as long as the forked process. What is
loaded is out of the garbage collector's sight, which Spark calls in full after every task.
"""

import ctypes
import gc
import importlib
import json
import os
import runpy
import select
import signal
import socket
import sys
from contextlib import suppress
from typing import Final

# Spark's modules, and this pipeline.
_LOADED: Final = (
    "pandas",
    "pyspark.daemon",
    "pyspark.worker",
    "pyspark.sql.pandas.serializers",
    "pyspark.sql.streaming.python_streaming_source_runner",
    "pyspark.sql.streaming.stateful_processor_util",
    "pyspark.sql.streaming.transform_with_state_driver_worker",
    "pyspark.sql.worker.create_data_source",
    "pyspark.sql.worker.lookup_data_sources",
    "pyspark.sql.worker.plan_data_source_read",
    "pyspark.sql.worker.python_streaming_sink_runner",
    "pyspark.sql.worker.write_into_data_source",
    "workers.pipeline.application",
    "workers.pipeline.nodes.node_batch",
)
# Linux: the signal of a process whose parent has ended; the name of a process, of 15 characters.
_PDEATHSIG: Final = 1
_NAME: Final = 15
_ENDED_MS: Final = 200


class ForkServer:
    """Forks a process for each connection; ends with the driver, which holds its standard input."""

    def __init__(self, path: str) -> None:
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(path)
        self._listener.listen(64)
        self._poll = select.poll()
        self._children: dict[int, tuple[socket.socket, int]] = {}

    def run(self) -> None:
        """Serve until the driver has ended."""
        for source in (0, self._listener.fileno()):
            self._poll.register(source, select.POLLIN)
        while True:
            for number, _ in self._poll.poll(_ENDED_MS):
                if number == 0:
                    return
                if number == self._listener.fileno():
                    self._fork(self._listener.accept()[0])
                else:
                    # Spark has ended `forked.py`.
                    with suppress(ProcessLookupError):
                        os.kill(self._children[number][1], signal.SIGTERM)
                    self._poll.unregister(number)
            self._reap()

    def _fork(self, connection: socket.socket) -> None:
        try:
            data, streams, _, _ = socket.recv_fds(connection, 4, 3)
            with connection.makefile("rb") as file:
                arguments, environment = json.loads(file.read(int.from_bytes(data)))
        except (OSError, ValueError):
            # `forked.py` was killed meanwhile.
            connection.close()
            return
        child = os.fork()
        if child:
            for stream in streams:
                os.close(stream)
            self._children[connection.fileno()] = connection, child
            self._poll.register(connection, select.POLLIN)
            return
        for known in (self._listener, connection, *(known for known, _ in self._children.values())):
            known.close()
        libc = ctypes.CDLL(None)
        libc.prctl(_PDEATHSIG, signal.SIGTERM)
        libc.prctl(_NAME, arguments[-1][-15:].encode())
        signal.signal(signal.SIGINT, signal.default_int_handler)
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
            os.close(stream)
        os.environ.clear()
        os.environ.update(environment)
        sys.argv = arguments
        sys.modules.pop(arguments[0], None)
        runpy.run_module(arguments[0], run_name="__main__", alter_sys=True)
        sys.exit()

    def _reap(self) -> None:
        for number, (connection, child) in list(self._children.items()):
            ended, status = os.waitpid(child, os.WNOHANG)
            if ended:
                with suppress(OSError):
                    connection.send(bytes([os.waitstatus_to_exitcode(status) & 0xFF]))
                with suppress(KeyError):
                    self._poll.unregister(number)
                connection.close()
                del self._children[number]


def main() -> None:
    """Listen, load all modules, then serve."""
    # Of a terminal: the driver ends this process.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    server = ForkServer(sys.argv[1])
    for name in _LOADED:
        importlib.import_module(name)
    gc.collect()
    gc.freeze()
    server.run()


if __name__ == "__main__":
    main()
