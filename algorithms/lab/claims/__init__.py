"""Claims of papers about their figures, and the checks that decide them from a run's table."""

from algorithms.lab.claims.claim import Check, Claim, Decided, Finding, Outcome, Results, decide
