"""What a finished batch no longer needs of a source: the offsets that a consumer group commits."""

from controlplane.wire.topics.cut import SourceCut


def committed_of(cut: SourceCut) -> dict[int, int]:
    """Return the offsets to commit by partition: those of the first unread messages."""
    return {number: place.offset for number, place in cut.partitions.items()}
