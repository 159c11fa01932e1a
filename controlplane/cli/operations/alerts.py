"""Commands about alerts: list them, acknowledge, silence, withdraw."""

from typing import Final

from controlplane.cli.operations.declaration import Operation, Option

OPERATIONS: Final = (
    Operation(
        "alerts list", "GET", "/alerts", "exceeded limits of clusters, newest first",
        query=(Option("cluster", metavar="CLUSTER"),
               Option("subject", "latency_p95, node_load, ...", metavar="SUBJECT"),
               Option("state", "firing, acknowledged, silenced, cleared", metavar="STATE"),
               Option("cursor"), Option("limit", type=int, metavar="N")),
        rows="alerts", columns={
            "id": ("id", "number"), "cluster": ("cluster", "name"), "state": ("state", "text"),
            "alert": ("title", "name"), "value": ("value", "number"), "limit": ("limit", "number"),
            "unit": ("unit", "text"), "since (UTC)": ("since", "moment"),
        }, empty="no alert",
    ),
    Operation("alerts show", "GET", "/clusters/{cluster}/alerts/{id}", "one alert"),
    Operation(
        "alerts acknowledge", "POST", "/clusters/{cluster}/alerts/{id}/acknowledge",
        "record that somebody works on an alert", body=(Option("note", "for other operators"),),
        sentence="alert {id} is acknowledged",
    ),
    Operation(
        "alerts silence", "POST", "/clusters/{cluster}/alerts/{id}/silence",
        "silence an alert for a time, also if it fires again",
        body=(Option("minutes", "at most 10080, 7 days", type=int, metavar="N", required=True),
              Option("reason", "kept in the audit log", required=True)),
        sentence="alert {id} is silenced until {answer[silenced_until]}",
    ),
    Operation("alerts withdraw", "POST", "/clusters/{cluster}/alerts/{id}/withdraw",
              "withdraw the acknowledgement and the silence of an alert",
              sentence="alert {id}: acknowledgement and silence are withdrawn"),
)  # fmt: skip
