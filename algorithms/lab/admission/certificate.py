"""The certificate check of an admission plan."""

from typing import Any

from algorithms.admission.problem import NEW, AdmissionPlan, AdmissionProblem


def check(problem: AdmissionProblem, plan: AdmissionPlan) -> dict[str, Any]:
    """Return the counts of a plan, computed again from scratch.

    Raises `AssertionError` if a stream has no node, or a count is wrong.
    """
    assert len(plan.assignment) == len(problem.owner)
    assert ((plan.assignment >= 0) & (plan.assignment < plan.nodes)).all()
    redirected = [
        stream
        for stream, (before, after) in enumerate(
            zip(problem.owner.tolist(), plan.assignment.tolist(), strict=True)
        )
        if before not in (NEW, after)
    ]
    assert redirected == plan.redirected.tolist()
    used = set(plan.assignment.tolist())
    assert set(plan.closed) == set(range(plan.nodes)) - used
    return {"redirected": len(redirected), "nodes": len(used)}
