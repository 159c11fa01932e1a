"""Descriptions in requests: a confined child checks a large one, before this process parses it.

A short text may have a fault per character, each of which takes a kilobyte.
"""

from typing import Final

from controlplane.cluster_spec.document import BadDescription, ClusterDescription
from controlplane.cluster_spec.text import parse_description
from controlplane.records.decoding import Answer, decode

_LARGE: Final = 64 * 1024


def parse_foreign(text: str) -> ClusterDescription:
    """Return the description. Raises `BadDescription`, and as `decode`."""
    if len(text) > _LARGE:
        faults, _ = decode(_faults_of, text.encode("utf-8", "surrogatepass"))
        if faults:
            raise BadDescription(faults)
    return parse_description(text)


def _faults_of(body: bytes) -> Answer:
    try:
        parse_description(body.decode("utf-8", "surrogatepass"))
    except BadDescription as bad:
        return bad.faults, b""
    return {}, b""
