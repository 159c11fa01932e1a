"""A stand-in for a spare: it says in a file that it is ready, and becomes a driver's stand-in.

python tests/workers/agent/spare_driver.py <folder> <descriptor>
"""

import json
import os
import socket
import sys
from pathlib import Path

from tests.workers.agent import agent_driver


def main() -> None:
    """Wait for an order."""
    with socket.socket(fileno=int(sys.argv[2])) as agent, agent.makefile("rb") as orders:
        agent.sendall(b"ready\n")
        (Path(sys.argv[1]) / "ready").write_text(str(os.getpid()))
        order = orders.readline()
    if order:
        arguments, variables = json.loads(order)
        os.environ |= variables
        cluster = arguments[arguments.index("--cluster") + 1]
        sys.argv[1:] = [variables["REDIS_URL"], cluster, sys.argv[1]]
        agent_driver.main()


if __name__ == "__main__":
    main()
