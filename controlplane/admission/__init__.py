"""The periodic admission of streams to split nodes, redirections by people, and what-if."""
