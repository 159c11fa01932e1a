"""The names of commands that do not follow from the address of their operation.

By operation, without its prefix. Fields of the request that are arguments stand in brackets.
"""

from collections.abc import Mapping
from typing import Any, Final

NAMES: Final[Mapping[str, str]] = {
    "access_get_caller": "whoami",
    "health_get_site_health": "health",
    "storage_get_storage": "storage",
    "access_revoke_token": "tokens revoke",
    "integrations_webhooks_renew_secret": "webhooks renew-secret",
    "integrations_webhooks_send_again": "webhooks send-again",
    "grants_grant_everywhere": "grants set-everywhere",
    "grants_revoke_everywhere": "grants remove-everywhere",
    "grants_grant_on_cluster": "grants set",
    "grants_revoke_on_cluster": "grants remove",
    "users_remove_second_factor": "users remove-second-factor",
    "saved_views_save_view": "views save",
    "clusters_fleet_list_fleet": "clusters list",
    "clusters_routes_set_batch_limits": "clusters limit",
    "clusters_routes_set_nodes": "clusters nodes [nodes]",
    "clusters_routes_list_nodes": "nodes list",
    "clusters_routes_change_node": "nodes change",
    "clusters_routes_get_version": "clusters version",
    "clusters_health_get_incident": "clusters incident",
    "clusters_health_decide_incident": "clusters decide [choice]",
    "clusters_lifecycle_add_demo": "clusters demo",
    "clusters_shedding_get_ladder": "shedding show",
    "clusters_shedding_activate_rung": "shedding activate [rung]",
    "clusters_shedding_list_intervals": "shedding intervals",
    "clusters_shedding_list_episodes": "shedding history",
    "streams_admission_declare_split_capacity": "clusters split-capacity [capacity]",
    "streams_admission_redirect_stream": "streams redirect [split]",
    "streams_records_append_records": "streams append",
    "streams_dead_letters_delete_dead_letters": "dead-letters delete [ids]",
    "queries_bulk_get_action": "queries action",
    "queries_bulk_restore_action": "queries restore-action",
    "queries_bulk_cancel_action": "queries cancel-action",
    "queries_drafts_cancel_preview": "queries cancel-preview",
    "queries_routes_end_queries": "queries end [names]",
    "queries_edges_set_drop_rule": "streams set-drop",
    "queries_edges_remove_drop_rule": "streams remove-drop",
    "queries_edges_set_key_grouping": "queries key-grouping [key_grouping]",
    "queries_edges_set_retention": "queries retain",
    "queries_edges_set_shedding": "shedding weights",
    "queries_edges_list_key_groupings": "queries groupings",
    "queries_sql_list_views": "queries views",
    "queries_sinks_list_sinks": "sinks list",
    "queries_sinks_add_sink": "sinks create",
    "queries_sinks_get_sink": "sinks show",
    "queries_sinks_change_sink": "sinks change",
    "queries_sinks_remove_sink": "sinks remove",
    "queries_sinks_pause_sink": "sinks pause",
    "queries_sinks_resume_sink": "sinks resume",
    "queries_sinks_retry_sink": "sinks retry",
    "queries_sinks_replay_sink": "sinks replay",
    "queries_sinks_list_refused_results": "sinks refused",
    "queries_sinks_replay_refused_results": "sinks replay-refused",
    "queries_sinks_delete_refused_results": "sinks delete-refused",
    "proposal_comments_add_comment": "proposals comment",
    "proposal_comments_add_reason": "proposals add-reason",
    "planners_list_planners": "proposals planners",
    "proposals_list_computing_queue": "proposals queue",
    "manual_plans_request_moves": "proposals move",
    "comparisons_request_comparison": "compare request",
    "executions_running_execution": "proposals running",
    "clusters_lifecycle_get_description_status": "clusters description-status",
    "policies_get_policy": "policy show",
    "policies_change_policy": "policy set",
    "policies_list_blackouts": "policy blackouts",
    "policies_add_blackout": "policy add-blackout",
    "policies_remove_blackout": "policy remove-blackout",
    "policies_list_exclusions": "policy exclusions",
    "policies_add_exclusion": "policy add-exclusion",
    "policies_remove_exclusion": "policy remove-exclusion",
    "policies_get_watch": "policy loops",
    "policies_list_decisions": "policy decisions",
    "explanations_get_explanation": "explain",
    "lab_list_experiments": "lab list [planner]",
    "lab_get_experiment": "lab experiment",
    "lab_request_run": "lab start",
    "lab_list_runs": "lab runs",
    "lab_compare_runs": "lab compare",
    "integrations_attached_list_jobs": "attached list",
    "integrations_attached_remove_job": "attached remove",
    "integrations_attached_get_query": "attached show",
    "integrations_attached_list_progress": "attached progress",
}
# Operations without a command of their own, with the command that calls them or the reason.
UNNAMED: Final[Mapping[str, str]] = {
    "integrations_attached_report_events": "a listener inside of the attached job sends the events",
    "clusters_routes_list_clusters": "`clusters list` has the same clusters with their figures",
    "clusters_routes_get_sample": "`watch` reads it",
    "clusters_health_get_stuck_batch": "`clusters skip-batch` without --batch",
    "clusters_health_skip_batch": "`clusters skip-batch`",
    "clusters_lifecycle_export_cluster": "`export` writes it as YAML",
    "clusters_lifecycle_apply_cluster": "`apply` reads a file",
    "streams_admission_get_characteristics": "`streams characteristics`",
    "streams_admission_declare_characteristics": "`streams characteristics`",
    "streams_stream_schemas_get_schema": "`streams change` reads it",
    "streams_stream_schemas_put_schema": "`streams change --schema`",
    "streams_stream_schemas_change_schema": "`streams change`",
    "streams_stream_schemas_preview_schema": "`streams change` without --apply",
    "streams_stream_schemas_infer_schema": "`streams infer` reads the file in its own process",
    "streams_routes_register_streams": "`streams declare`",
    "streams_dead_letters_replay_dead_letters": "`dead-letters replay` calls it repeatedly",
    "queries_routes_submit_query": "`queries submit` uses the bulk operation",
    "queries_routes_submit_queries": "`queries submit`",
    "queries_routes_end_query": "`queries end` ends several at once",
    "queries_feed_follow_query": "`tail`",
    "queries_sql_run_sql": "`sql`",
    "queries_sql_create_login": "the page Results shows the password once",
    "proposals_request_proposal": "`plan`",
    "proposals_get_proposal": "`proposals show` has its actions, too",
}
# Names of arguments and options, by the name of the value in the API, of all commands or of one.
OPTIONS: Final[Mapping[str, str]] = {
    "slug": "cluster", "pk": "id", "q": "search", "url": "to", "kinds": "kind", "places": "place",
    "queries": "query", "reason_code": "why", "is_default": "default",
    "clusters log url": "log-url", "clusters decide pk": "incident",
    "clusters create slug": "slug", "queries restore names": "name", "queries tasks tasks": "count",
    "dead-letters list reason": "why", "dead-letters export reason": "why",
    "queries retain retention_s": "seconds", "queries retain retention_windows": "windows",
    "shedding weights shedding_weight": "weight", "shedding weights shedding_floor": "floor",
    "shedding drill start": "from", "shedding drill stop": "to",
    "queries key-grouping key_grouping_parameters": "param",
    "queries key-grouping key_grouping": "grouping",
}  # fmt: skip
# Values that are sent without an option.
DEFAULTS: Final[Mapping[str, Mapping[str, Any]]] = {"queries list": {"state": "live"}}
# Below /clusters/{slug}: rows with commands of their own group, and the group.
_OF_CLUSTERS: Final = {
    name: name
    for name in ("alerts", "dead-letters", "ledger", "proposals", "queries", "scenarios",
                 "shedding", "streams")
} | {"comparisons": "compare"}  # fmt: skip
_ROW: Final = {"get": "show", "patch": "change", "put": "change", "delete": "delete",
               "post": "start"}  # fmt: skip
_ROWS: Final = {"get": "list", "post": "create"}


def name_of(operation_id: str, method: str, path: str) -> str:
    """Return the name of an operation's command with its arguments in brackets, "" without one."""
    short = short_id(operation_id)
    if short in UNNAMED:
        return ""
    return NAMES.get(short) or _derived(method, path.strip("/").split("/"))


def short_id(operation_id: str) -> str:
    """Return the id of an operation without the names of the packages of all APIs."""
    return operation_id.removeprefix("controlplane_").replace("api_", "", 1)


def option_of(command: str, name: str) -> str:
    """Return the name of an argument or option of a command for a value of the API."""
    short = OPTIONS.get(f"{command} {name}") or OPTIONS.get(name, name)
    return short.replace("_", "-")


def _derived(method: str, parts: list[str]) -> str:
    """Return the group, and what is done: `streams drops` of /clusters/{slug}/streams/{x}/drops."""
    if parts[:1] == ["clusters"] and len(parts) > 2 and parts[2] in _OF_CLUSTERS:  # noqa: PLR2004
        parts = [_OF_CLUSTERS[parts[2]], *parts[3:]]
    elif parts[:2] == ["lab", "runs"]:
        parts = ["lab", *parts[2:]]
    group, *rest = [part for part in parts if not part.startswith("{")]
    verb = _ROW[method] if parts[-1].startswith("{") else _ROWS.get(method, method)
    return f"{group} {'-'.join(rest) or verb}"
