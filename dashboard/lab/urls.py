"""URLs of the Lab."""

from django.urls import URLPattern, path

from dashboard.lab import files, results, views

_STORED = "lab/<slug:planner>/<slug:name>/stored"
urlpatterns: tuple[URLPattern, ...] = (
    path("lab/", views.index, name="lab"),
    path("lab/runs/<int:pk>/", views.detail, name="lab-run"),
    path("lab/runs/<int:pk>/charts.json", files.charts, name="lab-charts"),
    *(
        path(f"lab/runs/<int:pk>/{file}", files.download, {"kind": kind}, name=f"lab-{kind}")
        for kind, file in results.FILES.items()
    ),
    path("lab/runs/<int:pk>/comparison.json", files.comparison_chart, name="lab-comparison"),
    path("lab/runs/<int:pk>/change/", views.change, name="lab-change"),
    path("lab/runs/<int:pk>/cancel/", views.cancel, name="lab-cancel"),
    path("lab/runs/<int:pk>/again/", views.again, name="lab-again"),
    path("lab/runs/<int:pk>/delete/", views.delete, name="lab-delete"),
    # Last, as "runs" is not a planner.
    path("lab/<slug:planner>/<slug:name>/estimate/", views.estimate, name="lab-estimate"),
    path(f"{_STORED}/charts.json", files.stored_charts, name="lab-stored-charts"),
    *(
        path(f"{_STORED}/{file}", files.stored_download, {"kind": kind}, name=f"lab-stored-{kind}")
        for kind, file in results.FILES.items()
    ),
    path("lab/<slug:planner>/<slug:name>/", views.experiment, name="lab-experiment"),
)
