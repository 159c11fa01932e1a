"""Ctrl-C that is not lost.

Python raises KeyboardInterrupt wherever the main thread is. Where that is a callback from compiled
code, the exception is printed and forgotten, and a long run goes on. Here the interrupt is also
noted, and raised again at the next report of progress.
"""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from algorithms.vocabulary import Progress, silent


@contextmanager
def heeding_interrupts(progress: Progress = silent) -> Iterator[Progress]:
    """Give a progress that reports to `progress` and raises what Ctrl-C has raised before.

    Only the main thread hears signals; elsewhere this changes nothing.
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
    # Shells have background jobs ignore Ctrl-C, and that is to stay so.
    if not in_main or signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        yield report
        return
    before = signal.signal(signal.SIGINT, hear)
    try:
        yield report
    finally:
        signal.signal(signal.SIGINT, before)
