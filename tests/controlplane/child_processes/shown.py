"""A child that shows what it is and ends with a code: `python -m …shown CODE`; "wait": never."""

import json
import os
import signal
import sys
import time
from pathlib import Path


def main() -> int:
    about = {
        "arguments": sys.argv[1:],
        "command": Path("/proc/self/cmdline").read_bytes().rstrip(b"\0").decode().split("\0"),
        "environment": Path("/proc/self/environ").read_bytes().decode().split("\0"),
        "variables": dict(os.environ),
        "niceness": os.nice(0),
        "parent": os.getppid(),
        "ignores_broken_pipes": signal.getsignal(signal.SIGPIPE) is signal.SIG_IGN,
        "session": os.getsid(0) == os.getpid(),
        "inherited": os.read(int(os.environ["DESCRIPTOR"]), 5).decode(),
    }
    sys.stdout.write(json.dumps(about) + "\n")
    sys.stdout.flush()
    if sys.argv[1] == "wait":
        time.sleep(600)
    return int(sys.argv[1])


if __name__ == "__main__":
    sys.exit(main())
