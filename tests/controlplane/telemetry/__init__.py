"""Tests of samples of telemetry."""
