"""Parts of the web process around Django: its lifespan, and the end of its sockets."""
