"""The connection of a page's socket, which a test interrupts and restores."""

from playwright.sync_api import Page, WebSocketRoute


class Cable:
    """The socket's cable, which a test can pull and plug in again."""

    def __init__(self, page: Page) -> None:
        self.plugged = True
        self.sockets: list[WebSocketRoute] = []
        page.route_web_socket("**/ws/clusters/**", self._connect)

    def _connect(self, socket: WebSocketRoute) -> None:
        if self.plugged:
            socket.connect_to_server()
            self.sockets.append(socket)
        else:
            socket.close()

    def pull(self) -> None:
        self.plugged = False
        for socket in self.sockets:
            socket.close()
