"""Long runs that Ctrl-C stops.

Python raises KeyboardInterrupt wherever the main thread is. In a callback from compiled code
the exception is printed and lost, and a long run continues. `interruptible` notes the interrupt
and raises it again at the next report of progress.
"""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from algorithms.vocabulary import Progress, silent


@contextmanager
def interruptible(progress: Progress = silent) -> Iterator[Progress]:
    """Yield a progress that reports to `progress` and raises KeyboardInterrupt after Ctrl-C.

    Only the main thread receives signals; in other threads this changes nothing.
    """
    heard = threading.Event()

    def hear(signum: int, frame: FrameType | None) -> None:
        del signum, frame
        heard.set()
        raise KeyboardInterrupt

    def report(share: float) -> None:
        if heard.is_set():
            raise KeyboardInterrupt
        progress(share)

    in_main = threading.current_thread() is threading.main_thread()
    # Shells let background jobs ignore Ctrl-C; this keeps it so.
    if not in_main or signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        yield report
        return
    before = signal.signal(signal.SIGINT, hear)
    try:
        yield report
    finally:
        signal.signal(signal.SIGINT, before)
