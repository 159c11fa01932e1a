"""Proposals: the list, asking for one, reviewing it, deciding it, its moves as a file."""

import csv
from collections import Counter
from typing import Any

from django.core.paginator import Paginator
from django.http import HttpResponse, HttpResponseRedirect, JsonResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_POST

from algorithms.errors import UnknownAlgorithm
from algorithms.placement.planner import PlacementAlgorithm
from algorithms.registry import PLACEMENT, algorithm
from controlplane.errors import Fields, Forbidden, Invalid, WeirError
from controlplane.models import Cluster, Proposal
from controlplane.selectors.proposals import ProposalFilters, proposal_by_id, proposals_page
from controlplane.services import proposals, verbs
from controlplane.services.access import require_operator
from controlplane.services.proposals.states import ACTIVE
from dashboard.figures.proposal import proposal_figures
from dashboard.forms import offered_algorithms, parameter_fields, parameters, shown_fields
from dashboard.guards import PageRequest, cluster_page
from dashboard.proposal_verbs import WORDS, buttons
from dashboard.shown import show, show_list, tell, tell_refusal

MOVES_PER_PAGE = 100
MOVE_COLUMNS = ("query", "name", "from", "to", "outcome", "note")
UNDER_WAY = (Proposal.State.COMPUTING, Proposal.State.APPROVED, *ACTIVE)


@cluster_page
def index(request: PageRequest, cluster: Cluster) -> HttpResponse:
    """Show a page of proposals and the form that asks for one."""
    filters = ProposalFilters.of(request.GET)
    context = {
        "cluster": cluster,
        "filters": filters,
        "page": proposals_page(cluster, filters),
        "states": Proposal.State.values,
    }
    whole = context | _form(cluster, _algorithm(request.GET.get("algorithm", "")), {}, {})
    return show_list(request, "proposals.html", "_proposals_table.html", whole)


@cluster_page
def form(request: PageRequest, cluster: Cluster) -> HttpResponse:
    """Return the fields of the chosen algorithm."""
    chosen = _algorithm(request.GET.get("algorithm", ""))
    context = {"cluster": cluster} | _form(cluster, chosen, {}, {})
    return show(request, "_proposal_form.html", context)


@cluster_page
def ask(request: PageRequest, cluster: Cluster) -> HttpResponse | HttpResponseRedirect:
    """Ask a planner for a plan."""
    require_operator(request.actor, cluster)
    name = request.POST.get("algorithm", "")
    chosen = _algorithm(name)
    try:
        given = parameters(parameter_fields(chosen, cluster), request.POST.dict())
        # The name as it came: the service refuses one that is not known.
        proposal = proposals.request(request.actor, cluster, name, given)
    except Invalid as invalid:
        filters = ProposalFilters()
        context = {
            "cluster": cluster,
            "filters": filters,
            "page": proposals_page(cluster, filters),
            "states": Proposal.State.values,
        }
        fields = _form(cluster, chosen, request.POST.dict(), invalid.fields)
        return show(request, "proposals.html", context | fields, 422)
    return redirect("proposal", cluster.slug, proposal.pk)


@cluster_page
def detail(request: PageRequest, cluster: Cluster, pk: int) -> HttpResponse:
    """Show a proposal with what it would change and what one may do with it."""
    proposal = proposal_by_id(cluster, pk)
    context = {"cluster": cluster, "proposal": proposal} | _review(request, proposal)
    return show_list(request, "proposal.html", "_proposal_body.html", context)


@cluster_page
def charts(request: PageRequest, cluster: Cluster, pk: int) -> JsonResponse:
    """Return the bars before and after, as JSON."""
    proposal = proposal_by_id(cluster, pk)
    names = [node["name"] for node in proposal.snapshot.get("nodes", [])]
    return JsonResponse({"figures": proposal_figures(names, proposal.before, proposal.after)})


@cluster_page
def moves_json(request: PageRequest, cluster: Cluster, pk: int) -> JsonResponse:
    """Return seal and moves as a file."""
    proposal = proposal_by_id(cluster, pk)
    answer = JsonResponse({"proposal": pk, "seal": proposal.seal, "moves": proposal.moves})
    answer["Content-Disposition"] = f'attachment; filename="proposal-{pk}-moves.json"'
    return answer


@cluster_page
def moves_csv(request: PageRequest, cluster: Cluster, pk: int) -> HttpResponse:
    """Return the moves as a file."""
    answer = HttpResponse(content_type="text/csv; charset=utf-8")
    answer["Content-Disposition"] = f'attachment; filename="proposal-{pk}-moves.csv"'
    writer = csv.writer(answer)
    writer.writerow(MOVE_COLUMNS)
    for move in proposal_by_id(cluster, pk).moves:
        writer.writerow([_cell(move.get(column)) for column in MOVE_COLUMNS])
    return answer


@cluster_page
def say(request: PageRequest, cluster: Cluster, pk: int, verb: str) -> HttpResponseRedirect:
    """Say one of the verbs that the proposal's state allows; the form names seal and reason."""
    said = verbs.verb_at(verb)
    proposal = proposal_by_id(cluster, pk)
    given = {name: request.POST.get(name, "") for name in ("seal", "reason")}
    try:
        verbs.say(request.actor, proposal, said, **given)
        tell(request, WORDS[said.name].done)
    except Forbidden:
        raise
    except WeirError as refusal:
        tell_refusal(request, refusal)
    return redirect("proposal", cluster.slug, pk)


@cluster_page
def ask_anew(request: PageRequest, cluster: Cluster, pk: int) -> HttpResponseRedirect:
    """Ask for the same plan on the cluster as it is now."""
    anew = proposals.ask_anew(request.actor, proposal_by_id(cluster, pk))
    return redirect("proposal", cluster.slug, anew.pk)


def _form(
    cluster: Cluster, chosen: PlacementAlgorithm, values: dict[str, str], errors: Fields
) -> dict[str, Any]:
    fields = parameter_fields(chosen, cluster)
    return {
        "algorithms": offered_algorithms(),
        "chosen": chosen,
        "fields": shown_fields(fields, values, errors),
        "general_faults": errors.get("algorithm", []),
    }


def _algorithm(name: str) -> PlacementAlgorithm:
    """Return the named algorithm, the best known one for an unknown name."""
    try:
        return algorithm(PLACEMENT, name)
    except UnknownAlgorithm:
        return offered_algorithms()[0]


def _review(request: PageRequest, proposal: Proposal) -> dict[str, Any]:
    nodes = proposal.snapshot.get("nodes", [])
    ready = proposal.state == Proposal.State.READY
    moves = Paginator(_named_moves(proposal), MOVES_PER_PAGE)
    return {
        "title": _algorithm(proposal.algorithm).title,
        "moves": moves.get_page(request.GET.get("page")),
        "queries": len(proposal.snapshot.get("queries", [])),
        "outcomes": sorted(Counter(m["outcome"] for m in proposal.moves if m["outcome"]).items()),
        "node_count": len(nodes),
        "drift": proposals.drift_of(proposal) if ready else None,
        "under_way": proposal.state in UNDER_WAY,
        "percent": round(100 * proposal.progress),
        "buttons": buttons(verbs.offered(request.actor, proposal)),
        "may_ask_anew": verbs.may_ask_anew(request.actor, proposal),
    }


def _named_moves(proposal: Proposal) -> list[dict[str, Any]]:
    names = {node["index"]: node["name"] for node in proposal.snapshot.get("nodes", [])}
    return [
        {
            "query": move["query"],
            "name": move["name"],
            "source": names.get(move["from"], move["from"]),
            "target": names.get(move["to"], move["to"]),
            "outcome": move["outcome"],
            "note": move["note"],
        }
        for move in proposal.moves
    ]


def _cell(value: Any) -> Any:
    """Return the value so that no spreadsheet takes it for a formula."""
    text = "" if value is None else str(value)
    return f"'{text}" if text[:1] in ("=", "+", "-", "@") else text


post_ask: Any = require_POST(ask)
post_say: Any = require_POST(say)
post_ask_anew: Any = require_POST(ask_anew)
