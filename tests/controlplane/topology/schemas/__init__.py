"""Tests of schemas of streams."""
