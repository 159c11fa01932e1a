"""Files of a directory or store: `latest`, `read` and `browse`, each row once by an index."""
