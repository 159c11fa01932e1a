"""Topics that are read in place: `latest`, `plan`, `read`, `lag` and `retained` of a source."""
