# SPDX-License-Identifier: BSD-3-Clause
"""Where the two sides of a test run: here, or on other hosts over ssh."""

import shlex
import sys
from dataclasses import dataclass

__all__ = ["Hosts"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Hosts:
    """How a side is started."""

    server: str | None = None
    """Host of the server; None: here."""
    client: str | None = None
    """Host of the client; None: here."""
    server_address: str | None = None
    """Address that the server is at; None: what the provider takes first."""
    client_address: str | None = None
    """Address that the client is at."""
    shell: str = "ssh"
    """Runs a command on a host: ``SHELL HOST COMMAND``."""
    python: str = sys.executable
    """The interpreter on both hosts."""

    def command(self, arguments: list[str], *, client: bool) -> list[str]:
        """The command of one side."""
        address = self.client_address if client else self.server_address
        more = ["-s", address] if address else []
        command = [self.python, "-P", "-m", "fabtests", *arguments[:1], *more, *arguments[1:]]
        host = self.client if client else self.server
        return command if host is None else [*shlex.split(self.shell), host, shlex.join(command)]

    @property
    def oob_host(self) -> list[str]:
        """Options that tell the client where the TCP connection beside the fabric goes."""
        return ["-O", self.server_address] if self.server_address else []
