"""Dependencies are bounded, so that `pip install weir` installs what the tests ran with."""

import ast
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from controlplane.installation.env import ROOT

UPPER = frozenset({"<", "<=", "==", "~="})
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
DECLARED = [
    *PROJECT["build-system"]["requires"],
    *PROJECT["project"]["dependencies"],
    *(text for extra in PROJECT["project"]["optional-dependencies"].values() for text in extra),
]
LOCKED = dict(
    line.split(";")[0].strip().split("==", 1)
    for line in (ROOT / "requirements.lock").read_text().splitlines()
    if "==" in line and not line.startswith((" ", "#"))
)
FACTORY = Path("controlplane/wire/redis_clients.py")
CONSTRUCTORS = frozenset({"Redis", "StrictRedis"})
# Other libraries have pools of the same name, which are made of no URL.
POOLS = frozenset({"ConnectionPool", "BlockingConnectionPool"})


@pytest.mark.parametrize("text", DECLARED)
def test_a_dependency_has_both_bounds_and_its_lock_is_within(text: str) -> None:
    """A new major version of redis-py broke the sockets of quiet clusters."""
    requirement = Requirement(text)
    operators = {specifier.operator for specifier in requirement.specifier}
    assert operators & UPPER
    assert operators & {">=", "==", "~="}
    locked = LOCKED.get(requirement.name)
    assert locked is None or requirement.specifier.contains(locked)


def _constructed(tree: ast.Module) -> list[str]:
    """Return the classes of redis-py that a module calls, or whose `from_url` it calls."""
    calls = [node.func for node in ast.walk(tree) if isinstance(node, ast.Call)]
    owners = [
        call.value for call in calls if isinstance(call, ast.Attribute) and call.attr == "from_url"
    ]
    called = [name for name in map(_name, [*calls, *owners]) if name in CONSTRUCTORS]
    return called + [name for name in map(_name, owners) if name in POOLS]


def _name(node: ast.expr) -> str:
    return str(getattr(node, "attr", getattr(node, "id", "")))


def test_every_connection_to_redis_comes_from_the_factory() -> None:
    """Only there do connections have time-outs."""
    modules = [
        path.relative_to(ROOT)
        for package in ("controlplane", "dashboard", "workers")
        for path in (ROOT / package).rglob("*.py")
    ]
    others = [path for path in modules if _constructed(ast.parse((ROOT / path).read_text()))]
    assert others == [FACTORY]
