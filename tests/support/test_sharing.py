"""Which tests a process starts next."""

from collections import deque
from dataclasses import dataclass, field
from types import SimpleNamespace

import pytest

from tests.support.nightly import NIGHTLY
from tests.support.sharing import Sharing, next_scope, scope_of

WEIR = scope_of("tests/end_to_end/test_secrets.py::test_a")
SPARK = scope_of("tests/workers/pipeline/test_ladder_kill.py::test_a")
OTHER_SPARK = scope_of("tests/workers/attach/test_real_job.py::test_a")
OWN_WEIR = scope_of("tests/end_to_end/test_restart_groups.py::test_a")
BROKER = "tests/workers/pipeline/sources/test_all_sources.py"
SMALL = scope_of("tests/test_dependencies.py::test_a")


def test_a_file_with_a_weir_of_its_own_runs_beside_the_shared_one() -> None:
    assert scope_of("tests/end_to_end/test_operator_day.py::test_a") == WEIR
    assert OWN_WEIR == "tests/end_to_end/test_restart_groups.py"
    assert next_scope([OWN_WEIR, SPARK, SMALL], [WEIR]) == OWN_WEIR
    assert next_scope([SPARK, SMALL], [WEIR, OWN_WEIR]) == SMALL


def test_what_shares_a_server_runs_in_one_process() -> None:
    """That of a fixture of its file, or by day PostgreSQL."""
    assert scope_of(f"{BROKER}::test_a") == scope_of(f"{BROKER}::test_b") == BROKER
    files = ("cluster_spec/test_apply", "wire/results/test_writer")
    scopes = {scope_of(f"tests/controlplane/{name}.py::test_a[postgresql]") for name in files}
    assert len(scopes) == (2 if NIGHTLY else 1)


def test_spark_runs_in_one_process_beside_the_shared_weir() -> None:
    assert next_scope([WEIR, SPARK, SMALL], []) == WEIR
    assert next_scope([SPARK, OTHER_SPARK, SMALL], [WEIR]) == SPARK
    assert next_scope([OTHER_SPARK, SMALL], [WEIR, SPARK]) == SMALL
    assert next_scope([OTHER_SPARK], [SPARK]) == OTHER_SPARK
    assert next_scope([OTHER_SPARK, SMALL], [SMALL]) == OTHER_SPARK


@dataclass(eq=False)
class Process:
    """A process of a run, which is sent the indices of tests."""

    tests: deque[int] = field(default_factory=deque)
    shutting_down: bool = False
    gateway: SimpleNamespace = field(default_factory=lambda: SimpleNamespace(id=""))

    def send_runtest_some(self, indices: list[int]) -> None:
        self.tests.extend(indices)

    def shutdown(self) -> None:
        self.shutting_down = True


def sharing_among(processes: list[Process], tests: list[str]) -> Sharing:
    """Return a scheduler that has shared out the first tests among these processes."""
    options = SimpleNamespace(loadscopereorder=False)
    config = SimpleNamespace(getvalue=lambda _: ["popen"] * len(processes), option=options)
    sharing = Sharing(config)
    for process in processes:
        sharing.add_node(process)
        sharing.add_node_collection(process, tests)
    sharing.schedule()
    return sharing


@pytest.mark.parametrize("left", [1, 2, 3])
def test_a_process_that_replaces_a_crashed_one_runs_what_is_left(left: int) -> None:
    """As many tests are left as given; the other process has none to run any more."""
    tests = [f"tests/test_examples.py::test_{number}" for number in range(3)]
    crashed, other = Process(), Process()
    sharing = sharing_among([crashed], tests)
    for _ in range(len(tests) - left):
        sharing.mark_test_complete(crashed, crashed.tests.popleft())
    crashed.shutdown()
    sharing.remove_node(crashed)
    sharing.add_node(other)
    sharing.add_node_collection(other, tests)
    sharing.schedule()
    while len(other.tests) > 1 or (other.tests and other.shutting_down):
        sharing.mark_test_complete(other, other.tests.popleft())
    assert not other.tests
    assert sharing.tests_finished


def test_every_test_is_run_once_and_finished_ones_are_forgotten() -> None:
    processes = [Process() for _ in range(3)]
    files = (
        "end_to_end/test_operator_day",
        "end_to_end/test_restart_groups",
        "test_dependencies",
        "test_examples",
    )
    tests = [f"tests/{name}.py::test_{number}" for name in files for number in range(20)]
    sharing = sharing_among(processes, tests)
    run: list[str] = []
    while busy := [process for process in processes if process.tests]:
        for process in busy:
            index = process.tests.popleft()
            run.append(tests[index])
            sharing.mark_test_complete(process, index)
            assert sum(map(len, sharing.assigned_work.values())) <= 3 * len(processes)
    assert sorted(run) == sorted(tests)
    assert all(process.shutting_down for process in processes)
