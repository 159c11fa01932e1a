"""Sizes of tables, kinds of keys, and folders."""

from pathlib import Path

import pytest
from pytest_django import Settings
from redis import Redis

from controlplane.background.retention import sizes
from controlplane.models import Cluster


@pytest.mark.parametrize(
    ("key", "kind"),
    [
        ("weir:{sf}:log:12", "log:*"),
        ("weir:{my-17}:windows:3:rows", "windows:*:rows"),
        ("weir:{sf}:route:256:full", "route:*:full"),
        ("weir:{sf}:transfer:1:2:3", "transfer:*:*:*"),
        ("weir:{sf}:block:0a1b2c3d4e5f", "block:*"),
        ("weir:beats", "weir:beats"),
    ],
)
def test_a_kind_of_key_names_no_cluster_and_no_number(key: str, kind: str) -> None:
    assert sizes.kind_of_key(key) == kind


@pytest.mark.django_db
def test_sizes_have_tables_keys_and_folders(
    redis_url: str, settings: Settings, tmp_path: Path
) -> None:
    settings.DATA_DIR = tmp_path
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "web-1.log").write_text("x" * 1000)
    Cluster.objects.create(slug="sf", name="SF")
    with Redis.from_url(redis_url) as client:
        client.set("weir:{sf}:log:1", "x" * 5000)
        client.set("weir:{sf}:log:2", "x" * 5000)
    sizes.forget()
    read = sizes.storage_sizes()
    tables = {size.name: size for size in read.tables}
    assert (tables["controlplane_cluster"].size or 0) > 0
    keys = {size.name: size for size in read.keys}
    assert keys["log:*"].items == 2
    assert (keys["log:*"].size or 0) > 10_000
    assert {size.name: (size.size, size.items) for size in read.folders} == {"logs": (1000, 1)}
    assert read.redis is not None
    assert read.redis.used > 0
