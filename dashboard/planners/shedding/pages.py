"""The pages of load shedding: their link in the navigation of a cluster, and addresses."""

from typing import Final

from django.urls import URLPattern, path

from dashboard.navigation import NavigationPage
from dashboard.planners.shedding import files, history, views

PAGES: Final = (NavigationPage("shedding", "Shedding"),)
URLS: Final[list[URLPattern]] = [
    path("shedding/", views.index, name="shedding"),
    path("shedding/live/", views.live, name="shedding-live"),
    path("shedding/history/", history.history, name="shedding-history"),
    path("shedding/ladder.csv", files.ladder_csv, name="shedding-ladder-csv"),
    path("shedding/kept.csv", files.kept_csv, name="shedding-kept-csv"),
    path("shedding/charts.json", views.charts, name="shedding-charts"),
    path("shedding/arm/", views.arm, name="shedding-arm"),
    path("shedding/disarm/", views.disarm, name="shedding-disarm"),
    path("shedding/activate/", views.activate, name="shedding-activate"),
    path("shedding/release/", views.release, name="shedding-release"),
    path("shedding/weights/", views.set_weights, name="shedding-weights"),
]
