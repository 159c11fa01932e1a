"""The processor time of tests, by file."""

import subprocess
import sys

from tests.support.processor_times import Times, table, used_s

# Works for half a second of processor time.
WORK = "import time\nwhile time.process_time() < 0.5: pass"


def test_files_with_most_processor_time_are_first_and_the_sum_is_last() -> None:
    times = [Times("a.py::x", 1.0, 5.0), Times("b.py::x", 2.0, 2.0), Times("a.py::y", 0.5, 1.0)]
    rows = [line.split(maxsplit=2) for line in table(times)]
    assert rows == [["2.0", "2.0", "b.py"], ["1.5", "6.0", "a.py"], ["3.5", "8.0", "all files"]]


def test_processes_count_while_they_run_and_afterwards() -> None:
    before = used_s()
    command = "import subprocess, sys; subprocess.run([sys.executable, '-c', sys.argv[1]])"
    subprocess.run([sys.executable, "-c", command, WORK], check=True)
    assert used_s() - before >= 0.5
