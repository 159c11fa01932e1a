"""Words that the product does not use, with what to write instead.

`TABLE` has the names that were replaced, `PHRASES` the ways to write that were. The checker is
`tests.language_checker`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final


@dataclass(frozen=True)
class Rule:
    """Words to replace.

    `names`: whole names in snake case of modules, functions, parameters, variables and fields;
    `classes`: names of classes; `parts`: words between the underscores of any of these; `modules`:
    ends of the paths of modules. `texts`: regular expressions for docstrings, comments, messages
    and templates; each matches one of `samples`, and none matches one of `fine`. `within`: the
    files and folders where the rule holds, all if empty; `exceptions`: files and folders that may
    use the words, each with the reason.
    """

    write: str
    names: tuple[str, ...] = ()
    classes: tuple[str, ...] = ()
    parts: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()
    samples: tuple[str, ...] = ()
    fine: tuple[str, ...] = ()
    within: tuple[str, ...] = ()
    exceptions: Mapping[str, str] = field(default_factory=dict)


TABLE: Final = (
    Rule(
        "node_batch.NodeBatch",
        names=("turn", "turns"),
        classes=("Turn",),
        within=("controlplane", "workers"),
        texts=(r"\bnode's turns?\b", r"\bturn of (a|the|each) node\b"),
        samples=("A node's turn", "The turn of the node"),
        fine=("Queries in turn", "turn off"),
    ),
    Rule(
        "backlog.NodeBacklog, WorkItem",
        classes=("Waiting", "Work"),
        modules=("pipeline/waiting", "nodes/waiting"),
    ),
    Rule(
        "partial_aggregation, partial_aggregates",
        names=("taking", "added_by"),
        modules=("engine/taking",),
    ),
    Rule(
        "BatchHeader, NodeInput, NodeOutput",
        classes=("Head", "Input", "Output"),
        modules=("pipeline/row", "exchange/row"),
    ),
    Rule(
        "state_transfer, export_state, import_state",
        names=("hand_over", "taken_out", "put_in"),
        modules=("hand_over", "engine/moving", "storage/moving"),
        texts=(
            r"\bhand(s|ed|ing)? ((it|them|its|their|the|a) (\w+ )?)?(over|on)\b",
            r"\btaken out\b",
            r"\bputs? in\b",
        ),
        samples=("The node hands its state on", "hand over", "State that is taken out", "puts in"),
        fine=("on the other hand", "The node exports its state"),
    ),
    Rule(
        "record_codec, finalize, StateSchema, AggregateSchema",
        classes=("Shape", "Form"),
        modules=("wire/blocks", "finishing", "wire/forms", "wire/layout"),
    ),
    Rule(
        "watermarks",
        names=("marks",),
        texts=(r"\bmarks? of (its|the|each|a) streams?\b", r"\bblock's \*?marks?\b"),
        samples=("the mark of its stream", "older than its block's mark"),
        fine=("a mark of the version", "marks below the line"),
        within=("controlplane", "dashboard", "workers"),
        exceptions={
            "controlplane/wire/language/errors.py": "the marks below a line of text, JSON `marks`",
            "controlplane/wire/language/parse.py": "sqlglot's positions of tokens",
            "controlplane/api/common/schemas.py": "the marks below a line of text, JSON `marks`",
            "dashboard/figures": "Plotly's markers: the marks of routing versions in charts",
            "dashboard/clusters/views.py": "the marks of routing versions in charts",
            "dashboard/queries/forms.py": "the marks below a line of text",
        },
    ),
    Rule(
        "sample_hash, partition_keys",
        names=("lucky", "salted"),
        parts=("luck", "salt"),
        texts=(r"\bluck(y)?\b", r"\bsalt(s|ed)?\b"),
        samples=("The luck of a record", "lucky", "The salted key"),
        fine=("The sample hash of a record",),
        exceptions={
            "controlplane/models/webhook.py": "the salt of a derived secret, a cryptographic term",
            "controlplane/integrations/webhooks.py": "the salt of a derived secret",
        },
    ),
    Rule(
        "checkpoint bootstrap",
        names=("plant", "planting", "seeded"),
        texts=(r"\bplant(s|ed|ing)?\b", r"\bseed(s|ed|ing)? (of )?(a|the) (new )?checkpoint\b"),
        samples=("plants a checkpoint", "seeds a new checkpoint", "the seed of the checkpoint"),
        fine=("the seed of the random numbers",),
    ),
    Rule(
        "batch_sequence, load_feedback",
        names=("high_water", "last_heard"),
        modules=("high_water", "last_heard"),
        texts=(r"\bhigh[- ]water\b", r"\blast[- ]heard\b"),
        samples=("the high-water mark", "the loads last heard"),
        fine=("the newest load feedback",),
    ),
    Rule(
        "edge, drop rule; the capability is load shedding",
        parts=("arc", "arcs", "shed", "sheds"),
        texts=(r"\barcs?\b", r"\bsheds?\b"),
        samples=("the arc of a stream", "a stream sheds", "records are shed"),
        fine=("load shedding", "architecture", "archive"),
    ),
    Rule(
        "key grouping",
        names=("scheme", "schemes"),
        classes=("Scheme",),
        texts=(r"\b(key|grouping|partitioning|its|query's) schemes?\b",),
        samples=("the query's scheme", "a key scheme"),
        fine=("the scheme of a URL",),
        exceptions={
            "controlplane/installation/env.py": "the scheme of a URL",
            "controlplane/integrations/outbound.py": "the scheme of a URL",
            "controlplane/wire/log/address.py": "the scheme of a URL",
            "docs/screenshots.py": "the colour scheme of a browser",
        },
    ),
    Rule(
        "aggregator node, aggregator",
        names=("merge_node", "merge_nodes", "merger", "owes"),
        texts=(r"\bmerge[- ]nodes?\b", r"\bnodes? that merges? (a|the) quer"),
        samples=("a merge node", "the node that merges the query"),
        fine=("the aggregator node merges partial windows",),
    ),
    Rule(
        "incarnation",
        texts=(r"\bruns? of (a|the|each|its) quer(y|ies)\b", r"\b(a|the) query's runs?\b"),
        samples=("a new run of the query", "the query's run"),
        fine=("a run of a streaming job", "the run of an experiment"),
    ),
    Rule(
        "idempotency token",
        names=("stamp", "stamps", "stamped"),
        classes=("Stamp",),
        parts=("stamp", "stamps"),
        texts=(r"\b(?<!time )stamp(s|ed)?\b",),
        samples=("under the same stamp", "a stamped append"),
        fine=("a timestamp",),
    ),
    Rule(
        "LogPosition, position; head",
        names=("tip", "log_tip"),
        classes=("Tip",),
        within=("controlplane/topology", "controlplane/wire", "workers/pipeline"),
        texts=(r"\bcut of the log\b", r"\b(the|its|log's) tip\b", r"\btip of\b"),
        samples=("a cut of the log", "the log's tip", "the tip of the log"),
        fine=("cuts event time into windows", "the tooltip of the chart"),
    ),
    Rule(
        "stop (end-exclusive); TaskRange, TimeRange",
        names=("past", "upto", "past_last", "past_lasts", "span", "spans"),
        classes=("Span",),
        within=("algorithms/migration", "controlplane", "dashboard", "workers"),
        parts=("upto",),
        texts=(r"\bupto\b", r"\bspans? of (tasks|event time|time)\b", r"\btask spans?\b"),
        samples=("tasks upto", "a span of time", "a task span"),
        fine=('<span class="muted">', "past the end", "this month's past"),
    ),
    Rule(
        "execution_plan.StepLimits; inverse; estimate_cost",
        names=("backwards", "carrying"),
        classes=("Caps",),
        parts=("price", "prices", "priced"),
        within=("controlplane", "dashboard", "workers"),
        modules=("carrying",),
        texts=(r"\bbackwards\b", r"\bpriced\b", r"\bprices?\b"),
        samples=("a plan backwards", "the plan is priced", "the price of a plan"),
        fine=("the estimated cost of a plan",),
        exceptions={
            "controlplane/api/common/examples.py": "a column of a stream",
            "controlplane/cli/commands/streams.py": "a column of a stream",
            "controlplane/wire/query_text.py": "a column of a stream",
            "dashboard/templates/dashboard/_query_text.html": "a column of a stream",
        },
    ),
    Rule(
        "imbalance_after_move, rollback_cost, MoveStatus",
        names=("undo", "fate", "fates"),
        classes=("Fate",),
        texts=(r"\bundo(es|ing)?\b", r"\bfates?\b", r"\bway back\b", r"\bprice of going back\b"),
        samples=("undo the plan", "the fate of a move", "no way back", "the price of going back"),
        fine=("roll back the execution", "the path of a file"),
    ),
    Rule(
        "return, report, notify; formatting, notifications, message",
        classes=("Told",),
        parts=("tell", "tells", "telling", "told"),
        modules=("telling", "told"),
        texts=(r"\bretells?\b", r"\b(tells?|told|telling)\b"),
        samples=("It tells the browsers", "who is told", "telling apart", "retell"),
        fine=("It notifies the browsers", "stellar"),
    ),
    Rule(
        "reconcile, housekeeping",
        parts=("tend", "tending", "upkeep"),
        modules=("tending", "upkeep"),
        texts=(r"\b(tends?|tended|tending)\b(?! to)", r"\bupkeep\b", r"\blook(s|ed|ing)? after\b"),
        samples=("It tends clusters", "tending the logs", "the upkeep of drops", "looking after"),
        fine=("It reconciles clusters", "extends", "an attended run"),
    ),
    Rule(
        "watch: cycle, observation, planner_request, decision_log, review",
        parts=("judge", "judged", "judging", "noting", "seeing"),
        modules=("passing", "asking"),
        texts=(r"\bjudg(e|es|ed|ing)\b",),
        samples=("judge a plan", "a plan is judged", "It judges", "judging"),
        fine=("review a plan",),
    ),
    Rule(
        "PolicyDecision, auto_approval, mark_stale; status",
        names=("applies_by_itself", "by_itself"),
        classes=("Verdict",),
        parts=("verdict", "verdicts", "outdate", "outdated"),
        texts=(r"\bverdicts?\b", r"\boutdate(s|d)?\b"),
        samples=("the verdict of the policy", "outdates a proposal"),
        fine=("the decision of the policy",),
    ),
    Rule(
        "apply; export",
        parts=("bring", "brings", "bringing", "describing"),
        modules=("bringing", "describing"),
        texts=(r"\b(brings?|bringing|brought)\b",),
        samples=("It brings", "bringing a cluster in", "what it brought"),
        fine=("It applies a description",),
    ),
    Rule(
        "responses, glossary, keyed_results, thresholds",
        modules=("dashboard/shown", "dashboard/words", "keyed", "dashboard/grades"),
    ),
    Rule(
        "place_pending, PlacementPass; commit_change",
        names=("drain", "drained", "carry_out", "carried_out"),
        classes=("Drained",),
        modules=("placing", "deciding"),
        texts=(r"\bcarr(y|ies|ied|ying) out\b", r"\bcarr(y|ies|ied|ying) (it|them) out\b"),
        samples=("carries out a plan", "carried out", "carry it out"),
        fine=("executes a plan", "carries records"),
    ),
    Rule("PlannerRequest, QuerySpec; request", names=("asked",), classes=("Asked",)),
)

# Ways to write that rules 3 to 5 replace.
PHRASES: Final = (
    Rule(
        "the thing itself: query, row, index, moment, text",
        names=("one", "found", "came", "at", "alone", "mine", "gone", "begun"),
        exceptions={
            "controlplane/integrations/attached_jobs.py": "a key of the messages of jobs",
            "controlplane/proposals/review.py": "a key of stored JSON",
            "workers/demo": "a column of the recordings",
        },
    ),
    Rule("fit_to_budget; supersede_rivals", names=("afforded", "retire_rivals")),
    Rule(
        "report, name, describe, return, contain",
        texts=(r"\b(says?|said|saying)\b",),
        samples=("It says so", "say why", "what was said", "saying"),
        fine=("It reports so", "essays"),
    ),
    Rule(
        "automatically",
        texts=(r"\bby (itself|themselves)\b",),
        samples=("starts by itself", "begin by themselves"),
        fine=("starts automatically",),
    ),
    Rule("again", texts=(r"\b(anew|afresh)\b",), samples=("computed anew", "start afresh")),
    Rule(
        "a noun with its verb",
        texts=(
            r"\bof (those|that|one|ones) (that|which|who)\b",
            r"\bwho has (no|none)\b",
            r"\bfor who\b",
            r"\bwhoever\b",
            r"\blets? (\w+ ){0,3}be\b",
            r"\bha(s|ve) to be (brought|looked|seen|told)\b",
            r"\b(go(es)?|come|comes) (its|their|his) way\b",
            r"\bat leisure\b",
            r"\bcome to nothing\b|\bcame to nothing\b",
            r"\bit is not to\b|\bis not to run\b",
            r"\bnobody (looks|has|ask)",
            r"\bof late\b",
            r"\bstands? (in the way|here)\b",
            r"\bwhole or not at all\b",
            r"\bsee(s|n)? to\b",
        ),
        samples=(
            "of those that wait",
            "of one which waits",
            "who has none",
            "Raise for who is not an admin",
            "whoever decides",
            "what the database does not let be",
            "it has to be brought",
            "It goes its way",
            "at leisure",
            "the plan came to nothing",
            "The cluster is not to run",
            "it is not to run",
            "nobody looks",
            "batches of late",
            "it stands in the way",
            "whole or not at all",
            "it sees to all that",
        ),
        fine=("the queries that wait",),
    ),
    Rule(
        "is not a …",
        texts=(r"(?<!\b[Tt]here )\b([Ii]s|was) no (?!longer|more\b|less\b|such)\w",),
        samples=("The body is no JSON", "Is no name", "it was no batch"),
        fine=("There is no stream", "It is no longer live", "It is not a name", "is no more than"),
    ),
)

RULES: Final = (*TABLE, *PHRASES)
