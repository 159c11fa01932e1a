"""The wheel has what Weir needs at run time, and nothing else."""

import subprocess
import sys
import tomllib
from pathlib import Path
from zipfile import ZipFile

import pytest

from controlplane.installation.env import ROOT
from tests.support.wheel import build_wheel

PACKAGES = ("algorithms", "controlplane", "dashboard", "workers")
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
# Refuses what `pip install numpy scipy numba` does not install, and imports all of the algorithms.
ALONE = """
import importlib, pkgutil, sys

ALLOWED = {"algorithms", "llvmlite", "numba", "numpy", "scipy"} | sys.stdlib_module_names

class Refuse:
    def find_spec(self, name, path=None, target=None):
        top = name.partition(".")[0]
        if top not in ALLOWED and not top.startswith("_"):
            raise ModuleNotFoundError(name, name=name)

sys.meta_path.insert(0, Refuse())
import algorithms

names = [module.name for module in pkgutil.walk_packages(algorithms.__path__, "algorithms.")]
for name in names:
    if not name.endswith("__main__"):
        importlib.import_module(name)
from algorithms.errors import MissingDependency
from algorithms.shedding.lp import Lp
from algorithms.warm_up import shedding_problems

for problem in shedding_problems():
    try:
        Lp().solve(problem)
    except MissingDependency as error:
        print(error)
        break
print(len(names))
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> ZipFile:
    return ZipFile(build_wheel(tmp_path_factory.mktemp("wheel")))


def files_below(folder: Path) -> set[str]:
    """Return the files that belong to Weir, without READMEs and what Python compiles."""
    paths = (path for path in folder.rglob("*") if path.is_file())
    kept = (path for path in paths if path.name != "README.md" and "__pycache__" not in path.parts)
    return {path.relative_to(ROOT).as_posix() for path in kept}


def test_the_wheel_has_every_file_of_the_packages_and_no_other(wheel: ZipFile) -> None:
    """Templates, static files, recordings, references and migrations are among them."""
    expected = set().union(*(files_below(ROOT / package) for package in PACKAGES))
    expected |= {f"dashboard/{name}" for name in files_below(ROOT / "static")}
    info = f"weir-{VERSION}.dist-info/"
    assert {name for name in wheel.namelist() if not name.startswith(info)} == expected
    assert {Path(name).suffix for name in expected} >= {
        ".css", ".html", ".js", ".json", ".parquet", ".py", ".sh"
    }  # fmt: skip


def test_the_wheel_names_its_version_and_its_command(wheel: ZipFile) -> None:
    info = f"weir-{VERSION}.dist-info"
    assert f"\nVersion: {VERSION}\n" in wheel.read(f"{info}/METADATA").decode()
    commands = wheel.read(f"{info}/entry_points.txt").decode().split("\n")
    assert "weir = controlplane.cli.main:main" in commands


def test_the_changelog_begins_with_the_version() -> None:
    released = VERSION.partition(".dev")[0]
    headings = [line for line in (ROOT / "CHANGELOG.md").read_text().splitlines() if "## " in line]
    assert headings[0].startswith(f"## {released}")


def test_algorithms_alone_need_numpy_scipy_and_numba() -> None:
    """A planner that needs a further package names it."""
    done = subprocess.run(
        [sys.executable, "-c", ALONE], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    refused, number = done.stdout.splitlines()
    assert refused.startswith("highspy is not installed; install it with: pip install highspy")
    assert int(number) > 200
