"""The web interface: pages, WebSockets and figures."""
