"""Tests of bodies of records."""
