"""Commands about policies, proposals, comparisons, the ledger, the Lab and attached jobs."""

from typing import Any, Final

from controlplane.cli.operations.declaration import PAGED, REASON, Operation, Option
from controlplane.cli.waiting import Wait
from controlplane.extras import has_lab

_REASONED: Final = (Option("reason", "kept in the audit log", required=True),)
_PLAN: Final = (Option("algorithm", "the planner's default", metavar="NAME"),)
_PARAMETERS: Final = "a parameter, as nu=0.5"


def _is_computed(row: Any) -> bool:
    return bool(row["state"] not in ("queued", "running"))


_LAB_WAIT: Final = Wait(
    "/lab/runs/{id}", _is_computed, lambda row: float(row["progress"]),
    lambda row: row["state"] != "done",
)  # fmt: skip
_COMPARE_WAIT: Final = Wait(
    "/clusters/{cluster}/comparisons/{id}", lambda row: not row["computing"],
    lambda row: 1 - row["computing"] / max(1, len(row["candidates"])),
)  # fmt: skip
_CANDIDATES: Final = {
    "id": ("proposal", "number"), "planner": ("planner", "name"),
    "algorithm": ("algorithm", "name"), "state": ("state", "text"), "moves": ("moves", "number"),
    "bytes": ("bytes", "number"), "imbalance": ("imbalance", "number"),
    "Pareto": ("pareto", "text"),
}  # fmt: skip
_RUN_COLUMNS: Final = {
    "id": ("id", "number"), "planner": ("planner", "name"), "experiment": ("experiment", "name"),
    "name": ("name", "name"), "state": ("state", "text"), "progress": ("progress", "number"),
    "asked by": ("requested_by", "name"), "at (UTC)": ("requested_at", "moment"),
}  # fmt: skip
_RUN_BODY: Final = (
    Option("values", "values of the swept parameter", type=float, many=True, metavar="X"),
    Option("series", "series to compare", many=True, metavar="NAME"),
    Option("master", "the Spark master, as local[2] (the Lab's worker)", metavar="URL"),
)
_RUN_SHARING: Final = (
    Option("name", "what lists show"),
    Option("visibility", "who sees it", choices=("everyone", "owner")),
)

_POLICY: Final = (
    Operation("policy show", "GET", "/clusters/{cluster}/policy", "the policy of a cluster"),
    Operation("policy set", "PATCH", "/clusters/{cluster}/policy", "change settings of the policy",
              body=REASON, settings="a setting, as node_moves=2 watch=off (docs/policies.md)",
              sentence="{answer[summary]}"),
    Operation("policy loops", "GET", "/clusters/{cluster}/watch",
              "the last decision of each watch loop", rows="", columns={
                  "loop": ("loop", "name"), "last (UTC)": ("last_at", "moment"),
                  "times": ("count", "number"), "decision": ("text", "text")}),
    Operation("policy decisions", "GET", "/clusters/{cluster}/decisions",
              "the decisions of watch loops, newest first",
              query=(Option("loop"), Option("code"),
                     Option("filter", 'as "reason:acted at>2d"'), *PAGED),
              rows="decisions", columns={
                  "loop": ("loop", "name"), "last (UTC)": ("last_at", "moment"),
                  "times": ("count", "number"), "decision": ("text", "text")},
              empty="no decision"),
    Operation("policy blackouts", "GET", "/clusters/{cluster}/blackouts",
              "when nothing is changed automatically", rows="", columns={
                  "id": ("id", "number"), "when": ("description", "name"),
                  "owner": ("owner", "name"), "reason": ("reason", "text")}, empty="no blackout"),
    Operation("policy add-blackout", "POST", "/clusters/{cluster}/blackouts", "add a blackout",
              body=(Option("cron", "five fields, as \"0 3 * * *\""),
                    Option("minutes", type=int, metavar="N"),
                    Option("starts-at", "UTC", metavar="TIME"),
                    Option("ends-at", "UTC", metavar="TIME"), *_REASONED),
              sentence="blackout {answer[id]}: {answer[description]}"),
    Operation("policy remove-blackout", "DELETE", "/clusters/{cluster}/blackouts/{id}",
              "remove a blackout", query=REASON, sentence="blackout {id} is removed"),
    Operation("policy exclusions", "GET", "/clusters/{cluster}/exclusions",
              "what plans do not change", rows="", columns={
                  "id": ("id", "number"), "kind": ("kind", "text"), "subject": ("subject", "name"),
                  "until (UTC)": ("expires_at", "moment"), "reason": ("reason", "text")},
              empty="no exclusion"),
    Operation("policy add-exclusion", "POST", "/clusters/{cluster}/exclusions", "add an exclusion",
              body=(Option("kind", "node, query or stream", required=True),
                    Option("subject", "its name", required=True),
                    Option("expires-at", "UTC", required=True, metavar="TIME"), *_REASONED),
              sentence="exclusion {answer[id]} of {answer[kind]} {answer[subject]}"),
    Operation("policy remove-exclusion", "DELETE", "/clusters/{cluster}/exclusions/{id}",
              "remove an exclusion", query=REASON, sentence="exclusion {id} is removed"),
)  # fmt: skip

_PROPOSALS: Final = (
    Operation("proposals planners", "GET", "/clusters/{cluster}/planners",
              "planners, algorithms and parameters", rows="", columns={
                  "planner": ("name", "name"), "title": ("title", "text"),
                  "algorithms": ("algorithms", "titles")}),
    Operation("proposals estimate", "POST", "/clusters/{cluster}/proposals/estimate",
              "the memory and time that a plan would need",
              body=(Option("planner", required=True, metavar="NAME"), *_PLAN),
              settings=_PARAMETERS),
    Operation("proposals actions", "GET", "/clusters/{cluster}/proposals/{id}/actions",
              "the actions of a proposal, and what became of each", query=PAGED, rows="actions",
              columns={"place": ("place", "number"), "changes": ("title", "text"),
                       "of": ("object", "name"), "from": ("before", "text"),
                       "to": ("after", "text"), "bytes": ("bytes", "number"),
                       "status": ("status", "text")}, empty="nothing changes"),
    Operation("proposals allowed", "GET", "/clusters/{cluster}/proposals/{id}/allowed",
              "what you may do with a proposal now", rows="verbs", columns={
                  "verb": ("verb", "text"), "what it does": ("about", "name")}),
    Operation("proposals drift", "GET", "/clusters/{cluster}/proposals/{id}/drift",
              "what has changed since a proposal was computed"),
    Operation("proposals effects", "GET", "/clusters/{cluster}/proposals/{id}/effects",
              "the effect of each action", query=PAGED, rows="effects", columns={
                  "place": ("place", "number"), "changes": ("title", "text"),
                  "of": ("object", "name"), "from": ("before", "text"), "to": ("after", "text"),
                  "bytes": ("bytes", "number")}, empty="nothing changes"),
    Operation("proposals move", "POST", "/clusters/{cluster}/proposals/moves",
              "request a plan that moves running queries to a node",
              body=(Option("query", "the name of a query; may repeat", "queries", many=True,
                           required=True, metavar="NAME"),
                    Option("node", "the index of the node", type=int, required=True, metavar="N"),
                    *REASON),
              sentence="proposal {answer[id]} is {answer[state]}"),
    Operation("proposals without", "POST", "/clusters/{cluster}/proposals/{id}/without",
              "request the same proposal without some actions",
              body=(Option("place", "of an action that is left out; may repeat", "places",
                           type=int, many=True, required=True, metavar="N"),),
              sentence="proposal {answer[id]} is {answer[state]}"),
    Operation("proposals request-again", "POST", "/clusters/{cluster}/proposals/{id}/request-again",
              "request the same plan for the present state",
              sentence="proposal {answer[id]} is {answer[state]}"),
    Operation("proposals execution", "GET", "/clusters/{cluster}/proposals/{id}/execution",
              "the execution of a proposal, and its steps", query=PAGED, rows="step_rows", columns={
                  "step": ("number", "number"), "state": ("state", "text"),
                  "applied": ("applied", "number"), "bytes": ("bytes", "number"),
                  "pause ms": ("pause_ms", "number"), "seconds": ("seconds", "number")},
              empty="no step yet"),
    Operation("proposals comments", "GET", "/clusters/{cluster}/proposals/{id}/comments",
              "the comments on a proposal", rows="", columns={
                  "at (UTC)": ("at", "moment"), "author": ("author", "name"),
                  "comment": ("text", "text")}, empty="no comment"),
    Operation("proposals comment", "POST", "/clusters/{cluster}/proposals/{id}/comments",
              "comment on a proposal", body=(Option("text", "the comment", required=True),),
              sentence="comment {answer[id]}"),
    Operation("proposals add-reason", "POST", "/clusters/{cluster}/proposals/{id}/reason",
              "add the reason of a pause or stop", body=_REASONED,
              sentence="the reason is in the audit log"),
    Operation("proposals running", "GET", "/clusters/{cluster}/execution",
              "the execution that is under way"),
)  # fmt: skip

_COMPARE: Final = (
    Operation("compare request", "POST", "/clusters/{cluster}/comparisons",
              "compute several plans for one state of a cluster", data="comparison",
              rows="candidates", columns=_CANDIDATES, wait=_COMPARE_WAIT),
    Operation("compare list", "GET", "/clusters/{cluster}/comparisons",
              "the comparisons, newest first", query=PAGED, rows="comparisons", columns={
                  "id": ("id", "number"), "asked by": ("requested_by", "name"),
                  "at (UTC)": ("requested_at", "moment"), "plans": ("total", "number"),
                  "computing": ("computing", "number")}, empty="no comparison"),
    Operation("compare show", "GET", "/clusters/{cluster}/comparisons/{id}",
              "a comparison and its plans", rows="candidates", columns=_CANDIDATES,
              wait=_COMPARE_WAIT),
    Operation("compare cancel", "POST", "/clusters/{cluster}/comparisons/{id}/cancel",
              "cancel the plans that are not computed yet", body=REASON,
              sentence="{answer[cancelled]} cancelled"),
    Operation("ledger list", "GET", "/clusters/{cluster}/ledger",
              "executed proposals: expected and measured figures", query=PAGED, rows="entries",
              columns={"at (UTC)": ("at", "moment"), "id": ("proposal", "number"),
                       "planner": ("planner", "name"), "algorithm": ("algorithm", "name"),
                       "outcome": ("outcome", "text"), "applied": ("applied", "number"),
                       "skipped": ("skipped", "number")}, empty="no executed proposal"),
    Operation("ledger calibration", "GET", "/clusters/{cluster}/ledger/calibration",
              "how measured figures compare with expected ones", rows="figures", columns={
                  "planner": ("planner", "name"), "algorithm": ("algorithm", "name"),
                  "figure": ("figure", "name"), "runs": ("runs", "number"),
                  "ratio": ("ratio", "number"), "error": ("error", "number")},
              empty="no executed proposal"),
)  # fmt: skip

_LAB: Final = (
    Operation("lab experiment", "GET", "/lab/experiments/{planner}/{experiment}",
              "an experiment and its parameters"),
    Operation("lab start", "POST", "/lab/runs", "run an experiment on a worker",
              body=(Option("planner", required=True, metavar="NAME"),
                    Option("experiment", required=True, metavar="NAME"), *_RUN_BODY, *_RUN_SHARING),
              settings=_PARAMETERS, sentence="run {answer[id]} is {answer[state]}",
              wait=_LAB_WAIT),
    Operation("lab estimate", "POST", "/lab/estimate", "the memory and time that a run would need",
              body=(Option("planner", required=True, metavar="NAME"),
                    Option("experiment", required=True, metavar="NAME"), *_RUN_BODY),
              settings=_PARAMETERS),
    Operation("lab queue", "GET", "/lab/queue", "the runs that wait, in order", rows="", columns={
        "id": ("id", "number"), "position": ("position", "number"),
        "starts within (s)": ("starts_in_s", "number"),
        "takes at most (s)": ("estimated_s", "number")}, empty="nothing waits"),
    Operation("lab runs", "GET", "/lab/runs", "the runs, newest first",
              query=(Option("planner", metavar="NAME"), Option("experiment", metavar="NAME"),
                     Option("state"), Option("search", "words of the name", field="q"), *PAGED),
              rows="runs", columns=_RUN_COLUMNS, empty="no run"),
    Operation("lab show", "GET", "/lab/runs/{id}", "one run", wait=_LAB_WAIT),
    Operation("lab table", "GET", "/lab/runs/{id}/table", "the rows of a run", rows="rows"),
    Operation("lab claims", "GET", "/lab/runs/{id}/claims",
              "the claims of the paper, with their outcomes on a run", rows="", columns={
                  "source": ("source", "name"), "outcome": ("outcome", "text"),
                  "claim": ("text", "text"), "evidence": ("evidence", "text")}, empty="no claim"),
    Operation("lab compare", "GET", "/lab/runs/{id}/comparison",
              "a run divided by another one of the same experiment",
              query=(Option("other", "the other run", type=int, metavar="ID", required=True),
                     Option("measure", "by default that of the figure", metavar="NAME")),
              rows="points", columns={
                  "x": ("x", "number"), "series": ("series", "name"), "this": ("this", "number"),
                  "other": ("other", "number"), "ratio": ("ratio", "number")},
              empty="no common point"),
    Operation("lab change", "PATCH", "/lab/runs/{id}", "change the name of a run, or who sees it",
              body=_RUN_SHARING, sentence="run {answer[id]} is changed"),
    Operation("lab cancel", "POST", "/lab/runs/{id}/cancel", "cancel a run",
              sentence="run {answer[id]} is {answer[state]}"),
    Operation("lab again", "POST", "/lab/runs/{id}/again", "repeat a run",
              sentence="run {answer[id]} is {answer[state]}", wait=_LAB_WAIT),
    Operation("lab delete", "DELETE", "/lab/runs/{id}", "delete a run",
              sentence="run {id} is deleted"),
)  # fmt: skip

_ATTACHED: Final = (
    Operation("attached list", "GET", "/attached/jobs", "jobs that report to Weir",
              query=(Option("search", field="q"), *PAGED), rows="jobs", columns={
                  "id": ("id", "number"), "name": ("name", "name"), "state": ("state", "text"),
                  "owner": ("owner", "name"), "last seen": ("last_seen", "moment")},
              empty="no job"),
    Operation("attached show", "GET", "/attached/queries/{id}", "a query of an attached job"),
    Operation("attached progress", "GET", "/attached/queries/{id}/progress",
              "the micro-batches of a query of an attached job",
              query=(Option("start", "UTC", metavar="TIME"), Option("end", "UTC", metavar="TIME")),
              rows="", columns={"batch": ("batch", "number"), "rows": ("rows", "number"),
                                "ms": ("duration_ms", "number")}, empty="no micro-batch"),
    Operation("attached remove", "DELETE", "/attached/jobs/{id}", "remove an ended job",
              sentence="job {id} is removed"),
)  # fmt: skip

OPERATIONS: Final = (*_POLICY, *_PROPOSALS, *_COMPARE, *(_LAB if has_lab() else ()), *_ATTACHED)
