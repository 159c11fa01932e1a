"""What the commands do; each reads its arguments, calls a selector or a service, and prints."""
