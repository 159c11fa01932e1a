"""Pages of the Lab, and its tables as files."""
