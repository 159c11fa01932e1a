"""Files of a directory or object store: `latest`, `read` and `browse`, each row once by an index of files."""
