"""Descriptions in requests: few bytes with many faults take no memory of the web process."""

import json

import psutil
import pytest

from controlplane.cluster_spec.document import BadDescription
from controlplane.cluster_spec.foreign import parse_foreign
from controlplane.errors import Undecodable

MB = 2**20


def test_a_text_of_faults_is_refused_without_memory() -> None:
    """3 MB whose faults would take gigabytes."""
    before = psutil.Process().memory_info().rss
    with pytest.raises((BadDescription, Undecodable)):
        parse_foreign('{"queries":[' + "{}," * 900_000 + "{}]}")
    assert psutil.Process().memory_info().rss < before + 200 * MB


def test_large_and_small_texts_have_the_same_result() -> None:
    queries = [
        {"name": f"q{number}", "streams": ["s"], "text": {"aggregates": {"n": "count(*)"}}}
        for number in range(2000)
    ]
    faults = []
    for count in (2, 2000):
        policy = {"auto_kinds": ["nobody"]}
        text = json.dumps({"policy": policy, "queries": [{"name": ""}, *queries[:count]]})
        with pytest.raises(BadDescription) as bad:
            parse_foreign(text)
        faults.append(bad.value.faults)
    assert faults[0] == faults[1]
