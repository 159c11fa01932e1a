"""The page of internal errors."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from controlplane.health.disks import full_disks


def server_error(request: HttpRequest) -> HttpResponse:
    """Render an internal error without the database; 503 if a disk is full."""
    disks = full_disks()
    return render(None, "500.html", {"full_disks": disks}, status=503 if disks else 500)
