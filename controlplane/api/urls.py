"""The URLs of the API, without those of pages: a local command needs no page."""

from django.urls import path

from controlplane.api.application import api

urlpatterns = [path("api/v1/", api.urls)]
