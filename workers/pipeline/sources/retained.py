"""What a finished batch no longer needs of a topic: the offsets that its consumer group commits."""

from controlplane.wire.topics.cut import TopicCut


def committed_of(cut: TopicCut) -> dict[int, int]:
    """Return the offsets to commit by partition: those of the first unread messages."""
    return {number: place.offset for number, place in cut.partitions.items()}
