# SPDX-License-Identifier: BSD-3-Clause
"""The HTTP server that Prometheus scrapes: one page, few connections, none that waits for long."""

import socket
import socketserver
import sys
import threading
from typing import Any

from prometheus_client import CollectorRegistry, MetricsHandler

__all__ = ["PATH", "Server"]

PATH = "/metrics"
_MOST_CONNECTIONS = 16
_PATIENCE = 10.0  # seconds that a client may be silent


class Server(socketserver.ThreadingTCPServer):
    """Answers scrapes, each in a thread of its own.

    Parameters
    ----------
    address, port : str, int
        Where to listen; port 0: one that is free.
    registry : CollectorRegistry
        What a scrape gets.

    Raises
    ------
    OSError
        When there is no such address here, or the port is taken.
    """

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, address: str, port: int, registry: CollectorRegistry) -> None:
        found = socket.getaddrinfo(address, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        self.address_family, _, _, _, place = found[0]
        self._free = threading.BoundedSemaphore(_MOST_CONNECTIONS)
        handler = type("Handler", (Page,), {"registry": registry})
        super().__init__((str(place[0]), int(place[1])), handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answer in a new thread, or close the connection where there are too many."""
        if self._free.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Answer; then another connection may come."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of clients that go or are silent."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)

    @property
    def url(self) -> str:
        """Where the page is."""
        host, port = self.server_address[:2]
        name = f"[{host!s}]" if self.address_family == socket.AF_INET6 else str(host)
        return f"http://{name}:{port}{PATH}"


class Page(MetricsHandler):
    """One request."""

    timeout = _PATIENCE
    server_version = "ofipy"
    sys_version = ""

    def do_GET(self) -> None:
        """Send the metrics; nothing else is here."""
        if self.path.partition("?")[0] == PATH:
            super().do_GET()
        else:
            self.send_error(404, explain=f"the metrics are at {PATH}")
