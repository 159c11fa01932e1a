"""Connections to addresses that users name: the site's list of destinations, and its resolver."""
