"""Thousands of damaged bodies in all formats: each is answered, and no process ends or swells."""

from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
from django.test import Client

from controlplane.access.roles import Actor
from controlplane.models import Cluster, Stream
from controlplane.processes.isolation.limits import DECODING_MB
from tests.controlplane.api.callers import scripted
from tests.support.mutated import SCHEMA, mutated_bodies, whole_bodies
from tests.support.nightly import NIGHTLY

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.nightly("requests", by_day=True),
]
# 5,000 at night.
SEEDS, BODIES = (10, 500) if NIGHTLY else (1, 80)
MOST_MB = 512
ROOT = "/api/v1/clusters/sf/streams"


@pytest.fixture
def client(operator: Actor, sf: Cluster) -> Client:
    Stream.objects.create(cluster=sf, name="damaged", split=0, schema=SCHEMA)
    return scripted(operator)


def answered(client: Client, path: str, body: bytes, kind: str) -> int:
    path = f"{ROOT}/{path}?format={kind}"
    return client.post(path, body, content_type="application/octet-stream").status_code


def peak_mb(pid: int | str) -> int:
    """Return the most memory that a process has had, 0 if it has ended."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) // 1024 for line in lines if line.startswith("VmHWM")), 0)


@pytest.mark.parametrize("seed", range(SEEDS))
def test_damaged_bodies_end_and_swell_no_process(
    client: Client, seed: int, record_property: Callable[[str, object], None]
) -> None:
    """Append and infer; the answer is 201 or a refusal, and this process serves on."""
    for kind, body in whole_bodies():
        assert answered(client, "damaged/records", body, kind) == 201
        assert answered(client, "infer", body, kind) == 200
    Path("/proc/self/clear_refs").write_text("5")
    before, child_peak, codes = peak_mb("self"), 0, dict[int, int]()
    for number, kind, body in mutated_bodies(BODIES, seed):
        for path in ("damaged/records", "infer"):
            status = answered(client, path, body, kind)
            codes[status] = codes.get(status, 0) + 1
            assert status < 500, (number, kind, path)
        if number % 20 == 0:
            children = psutil.Process().children(recursive=True)
            child_peak = max(child_peak, *(peak_mb(child.pid) for child in children))
    for kind, body in whole_bodies():
        assert answered(client, "damaged/records", body, kind) == 201
    record_property("figures", f"{codes}, {peak_mb('self') - before} MB, child {child_peak} MB")
    assert peak_mb("self") - before < MOST_MB
    assert child_peak < MOST_MB
    assert DECODING_MB < MOST_MB
