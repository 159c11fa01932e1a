"""A process of Spark: it lives as long as the one that is forked for it.

The fork is one of the process that has loaded what all need (`child_processes/preload.py`).
"""

import json
import os
import socket
import sys


def main() -> None:
    """Request a fork with these streams, arguments and variables; wait for its end."""
    server = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    try:
        if sys.argv[1] != "-m":
            raise OSError
        server.connect(os.environ["WEIR_FORK_SERVER"])
        streams = [0, 1, 2]
        request = json.dumps([0, sys.argv[2:], {}, 0, dict(os.environ), streams])
        socket.send_fds(server, [request.encode()], streams)
        # Its id, or nothing from a server that is killed.
        int(server.recv(64))
    except (OSError, ValueError):
        # What is not a module, such as the query of the version.
        python = os.environ["WEIR_PYTHON"]
        os.execv(python, [python, *sys.argv[1:]])  # noqa: S606 - Spark's arguments
    server.recv(1)


if __name__ == "__main__":
    main()
