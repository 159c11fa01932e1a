"""Explanations of exceeded limits: what is wrong, since when, why, and what would end it."""

from controlplane.explain.cause import Cause, CauseCode
from controlplane.explain.service import Breach, explain, likely_cause
from controlplane.explain.subjects import ExplanationSubject, SubjectKind, parse_subject
from controlplane.explain.values import Explanation

__all__ = [
    "Breach",
    "Cause",
    "CauseCode",
    "Explanation",
    "ExplanationSubject",
    "SubjectKind",
    "explain",
    "likely_cause",
    "parse_subject",
]
