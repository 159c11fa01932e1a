"""Watch loops: periodic checks of a cluster's measures, which request plans and apply them."""

from controlplane.watch.codes import CODES, DecisionCode
from controlplane.watch.cycle import sample_age_s, situation_of, watch_all, watch_cluster
from controlplane.watch.decision_log import prune
from controlplane.watch.loops import all_loops
from controlplane.watch.review import review_proposal
