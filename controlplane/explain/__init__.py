"""Explanations of exceeded limits: what is wrong, since when, why, and what would end it."""

from controlplane.explain.cause import Cause, CauseCode
from controlplane.explain.service import explain, likely_causes
from controlplane.explain.subjects import (
    ExplanationSubject,
    SubjectKind,
    parse_subject,
    subject_of_measure,
)
from controlplane.explain.values import Explanation
