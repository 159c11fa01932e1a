"""Search over everything with a name: clusters, nodes, streams, queries, proposals, experiments."""

from controlplane.lists.search.hits import Hit, HitKind
from controlplane.lists.search.objects import MAX_LENGTH, search_objects
