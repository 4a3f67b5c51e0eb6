# SPDX-License-Identifier: BSD-3-Clause
"""What ``ofipy devinfo`` and ``ofipy counters`` look at: this host, a recorded one, or another one over its server."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ofipy.cli.host import open_tree
from ofipy.cli.support import CommandError, ExitCode
from ofipy.host.tree import Tree

__all__ = ["looking"]


@contextmanager
def looking(root: str | None, host: str | None) -> Iterator[Callable[[], Tree]]:
    """The machine that was named. Each call has its files as they are then.

    Parameters
    ----------
    root : str, optional
        A recorded tree; None: no recorded one.
    host : str, optional
        A server of ``ofipy doctor --serve``, as HOST or HOST:PORT.

    Raises
    ------
    CommandError
        When the root cannot be opened, nobody answers at the host, or its server does not tell.
    """
    if host is None:
        tree = open_tree(root)
        yield lambda: tree
        return
    # Without a host, no endpoint is needed.
    from ofipy.cli.doctor_peer import meet
    from ofipy.cli.ping import client_place
    from ofipy.doctor.peer.client import Refused
    from ofipy.doctor.peer.machine import fetch_machine
    from ofipy.ping.lane import NoServer
    from ofipy.ping.port import knock
    from ofipy.ping.wire import WireError

    place = client_place(host)
    try:
        with meet(place, None) as lane:
            yield lambda: fetch_machine(lane)
    except NoServer as error:
        reason, remedy = knock(place)
        raise CommandError(f"{error}; {reason}: {remedy}", code=ExitCode.NO_PROVIDER) from error
    except (Refused, WireError) as error:
        raise CommandError(f"{place}: {error}") from error
