"""Schemas of parameters and estimates, which plans, key groupings and experiments share."""

from algorithms.vocabulary import ParameterField
from controlplane.api.common.schemas import fields_of
from controlplane.planning.estimates import ShownEstimate


class ParameterOut(fields_of(ParameterField, without="type")):  # type: ignore[misc]
    """One parameter; type is bool, int, float or str."""

    type: str

    resolve_type = staticmethod(lambda field: field.type.__name__)


class EstimateOut(fields_of(ShownEstimate)):  # type: ignore[misc]
    """Estimated memory and time of a computation with their limits, in bytes and seconds."""
