"""Every benchmark can be imported, and reads its options, those of its smallest size as well."""

import pkgutil
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

import benchmarks
from benchmarks.__main__ import SMALLEST
from benchmarks.former_speed import arguments_of

ROOT = Path(benchmarks.__file__).parents[1]
MODULES = [
    name.removeprefix("benchmarks.")
    for _, name, is_package in pkgutil.walk_packages(benchmarks.__path__, "benchmarks.")
    if not is_package and name != "benchmarks.__main__"
]
# What `make bench` does not run, with the options that each requires.
OTHERS = {
    "demo_data.taxis": "/tmp",
    "demo_data.web": "/tmp",
    "native_query": "--redis-url redis://127.0.0.1:1/0 --cluster c --checkpoint /tmp/c",
    "former_speed": "--former ..",
    "light_load": "--against ..",
    "availability.web_restart": "http://127.0.0.1:8000",
    "mutation.sample": "--output mutants.json",
    "records.native_topic": "--servers 127.0.0.1:1 --topic t --checkpoint /tmp/c",
}


def load(name: str) -> ModuleType:
    return import_module(f"benchmarks.{name}")


@pytest.mark.parametrize("name", MODULES)
def test_it_is_run_by_name_or_shared_by_others(name: str) -> None:
    assert hasattr(load(name), "main") == (name in SMALLEST or name in OTHERS)


@pytest.mark.parametrize("name", SMALLEST)
def test_it_reads_its_options(name: str) -> None:
    usual = load(name).parse_options([])
    smallest = load(name).parse_options(SMALLEST[name].split())
    assert vars(usual).keys() == vars(smallest).keys()
    assert usual != smallest


@pytest.mark.parametrize("name", OTHERS)
def test_it_requires_options(name: str) -> None:
    with pytest.raises(SystemExit):
        load(name).parse_options([])
    load(name).parse_options(OTHERS[name].split())


@pytest.mark.parametrize("name", [*SMALLEST, "former_speed", "light_load"])
def test_the_documentation_names_it(name: str) -> None:
    assert name.rpartition(".")[2] in (ROOT / "docs" / "benchmarks.md").read_text()


@pytest.mark.parametrize("given", ["", "--records 1000 --key car --no-distinct"])
def test_the_comparison_of_checkouts_gives_options_that_its_runs_read(given: str) -> None:
    options = load("former_speed").parse_options(["--former", "..", *given.split()])
    passed = load("native_compare").parse_options(arguments_of(options))
    assert passed.json
    assert (passed.runs, passed.native_up_to, passed.queries) == (1, 0, [options.queries])
    for name in ("nodes", "max_records", "seconds", "warm", "records", "key", "distinct"):
        assert getattr(passed, name) == getattr(options, name)
