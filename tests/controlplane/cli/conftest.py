"""The command as a person calls it, in this process: what it prints, and its exit code."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from controlplane.access.roles import Actor
from controlplane.cli.main import main
from controlplane.models import Cluster
from tests.support.execution import prepared_scattered


@dataclass
class Ran:
    """What a call came to."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """What was printed as JSON."""
        return json.loads(self.out)


Weir = Callable[..., Ran]


@pytest.fixture(autouse=True, scope="session")
def _cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A cache of OpenAPI documents that is empty at first."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture
def weir(capsys: pytest.CaptureFixture[str]) -> Weir:
    """Call it: weir("clusters", "list", user="a-viewer"); whatever is printed fits a terminal."""

    def call(*words: object, user: str = "") -> Ran:
        capsys.readouterr()
        code = main([str(word) for word in words] + (["--as", user] if user else []))
        told = capsys.readouterr()
        assert "\x1b" not in told.out + told.err, "no colour where no terminal is"
        is_file = {"export", "schema", "watch"} & {str(word) for word in words[:2]}
        if "--json" not in words and not is_file:
            assert max((len(line) for line in told.out.splitlines()), default=0) <= 80
        return Ran(code, told.out, told.err)

    return call


@pytest.fixture
def cluster(operator: Actor, sf: Cluster) -> Cluster:
    """Twelve queries on three streams, on four nodes so that a plan has much to move."""
    return prepared_scattered(operator, sf)
