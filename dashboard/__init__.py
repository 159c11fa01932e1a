"""What is seen: pages, live sockets and figures."""
