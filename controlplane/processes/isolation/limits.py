"""The limits of computations."""

from typing import Final

from django.conf import settings

from controlplane.child_processes.confinement import Limits

MB: Final = 1 << 20
# The longest time that a page, or one cycle of the watch loops, waits for a ladder.
LADDER_S: Final = 30.0
# A person waits for a preview.
PREVIEW_S: Final = 5.0
PREVIEW_MB: Final = 256
# A body of 16 MiB: what it may unpack to (bodies.tables.MAX_EXPANDED), and its conversion.
DECODING_S: Final = 20.0
DECODING_MB: Final = 384
# Children of a web process that decode bodies: one more than a user has threads for them.
DECODERS: Final = 4


def proposal_limits() -> Limits:
    """Return the limits of the computation of a proposal."""
    return Limits(settings.PROPOSAL_MEMORY_MB * MB, float(settings.PROPOSAL_SECONDS))


def ladder_limits() -> Limits:
    """Return the limits of the computation of a ladder of drop rules, for which a request waits."""
    return Limits(settings.PROPOSAL_MEMORY_MB * MB, min(LADDER_S, settings.PROPOSAL_SECONDS))


def preview_limits() -> Limits:
    """Return the limits of the preview of a query, for which a form waits."""
    return Limits(PREVIEW_MB * MB, PREVIEW_S)


def lab_limits() -> Limits:
    """Return the limits of a run of the Lab."""
    return Limits(settings.LAB_MEMORY_MB * MB, float(settings.LAB_SECONDS))


def decoding_limits() -> Limits:
    """Return the limits of decoding a body, for which a request waits: processor time."""
    return Limits(DECODING_MB * MB, DECODING_S)
