"""Commands that are one operation of the API each, derived from its OpenAPI document."""
