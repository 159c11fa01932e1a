"""Telemetry, heartbeat and progress reports of an application."""
