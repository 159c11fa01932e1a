"""Files of a directory or object store: `latest` and `read`, each row once by an index of files."""
