"""`python -m workers.lab.live_migration`: a request as JSON on standard input, JSON lines out."""

import json
import signal
import sys
import tempfile
from pathlib import Path
from types import FrameType

from controlplane.processes.runtime.errors import CheckFailed
from workers.lab.live_migration.course import Course, CourseFailed, Request, own_redis


def main() -> int:
    """Run one course and write its rows; return 1 if it failed."""
    signal.signal(signal.SIGTERM, _leave)
    request = Request(**json.load(sys.stdin))
    try:
        with tempfile.TemporaryDirectory(prefix="weir-figure15-") as name:
            folder = Path(name)
            with own_redis(folder) as url:
                rows = Course(request, folder, url, lambda share: _say(progress=share)).run()
    except (CheckFailed, CourseFailed) as failed:
        return _end(1, error=str(failed))
    return _end(0, rows=rows)


def _end(status: int, **fields: object) -> int:
    """Write the last line; its reader ends this process, which has nothing left to stop."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    _say(**fields)
    return status


def _say(**fields: object) -> None:
    sys.stdout.write(json.dumps(fields) + "\n")
    sys.stdout.flush()


def _leave(number: int, frame: FrameType | None) -> None:
    """Stop the driver and Redis, then this process."""
    raise SystemExit(128 + number)


if __name__ == "__main__":
    sys.exit(main())
