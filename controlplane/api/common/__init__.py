"""What all endpoints of the API share: security, errors, lists, examples and OpenAPI."""
