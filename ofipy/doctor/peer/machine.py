# SPDX-License-Identifier: BSD-3-Clause
"""The devices and counters of another host, as its server reads them."""

from ofipy.doctor.peer.client import Refused
from ofipy.doctor.peer.wire import ARCHIVE, pack, parse, read_text
from ofipy.host.tree import Tree, open_files
from ofipy.ping.lane import Lane

__all__ = ["fetch_machine"]

_ANSWER = 30.0  # seconds: tools of the host are among what it reads
_LARGEST = 32 << 20  # bytes of files


def fetch_machine(lane: Lane) -> Tree:
    """The other host as it is now.

    Raises
    ------
    Refused
        When the server measures with another client, or cannot do this.
    OSError
        When it sent no archive, or one that is too large. ``ofipy.FabricError``: when it was lost.
    """
    answer = lane.ask(pack({"do": "machine"}), _ANSWER)
    if answer[:1] != ARCHIVE:
        raise Refused(read_text(parse(answer), "error") or "the server sent no archive")
    name = str(lane.place)
    return Tree(name, files=open_files(name, answer[1:], _LARGEST))
