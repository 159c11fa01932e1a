"""The tour of a demo cluster: disturb it, read why, approve a plan, and see its effect."""

from controlplane.clusters.tour.service import (
    PageKind,
    dismiss_tour,
    is_offered,
    note_page,
    start_tour,
    tour_of,
)
from controlplane.clusters.tour.steps import Tour, TourStep
