"""The client of the API: the connection, requests, and errors as exit codes."""
