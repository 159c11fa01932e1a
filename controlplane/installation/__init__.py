"""What an installation has: variables of its environment, data sets, static files, the Lab."""
