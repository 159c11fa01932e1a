"""The page of a request that failed by a fault of Weir's or of its machine."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from controlplane.health.disks import full_disks


def server_error(request: HttpRequest) -> HttpResponse:
    """Say what broke, without the database; on a full disk that is the cause (503)."""
    disks = full_disks()
    return render(None, "500.html", {"full_disks": disks}, status=503 if disks else 500)
