"""A process of Spark: it lives as long as the one that the fork server forks for it."""

import json
import os
import socket
import sys


def main() -> None:
    """Pass standard streams, arguments and environment to the server; wait for the fork's end."""
    connection = socket.socket(socket.AF_UNIX)
    try:
        if sys.argv[1] != "-m":
            raise OSError
        connection.connect(os.environ["WEIR_FORK_SERVER"])
    except OSError:
        # What is not a module, such as the query of the version; or the server was killed.
        python = os.environ["WEIR_PYTHON"]
        os.execv(python, [python, *sys.argv[1:]])  # noqa: S606 - Spark's arguments
    message = json.dumps([sys.argv[2:], dict(os.environ)]).encode()
    socket.send_fds(connection, [len(message).to_bytes(4)], [0, 1, 2])
    connection.sendall(message)
    connection.recv(1)


if __name__ == "__main__":
    main()
