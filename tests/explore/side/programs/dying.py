# SPDX-License-Identifier: BSD-3-Clause
"""A peer, in a process of its own, that dies or is late at each of its steps, while this process exchanges with it.

Every operation that names the peer ends. Other peers' messages, with the same tag, pass as before.
"""

import contextlib
import os
import signal
import socket
import struct
import traceback
from collections.abc import Callable
from functools import partial
from typing import Any

from board import Kind
from numbered import message, number_of
from pair import info_of
from program import PATIENCE, Program, Stage, Wrong

import ofipy
from ofipy._base.binding import lib
from programs.storms import warm

__all__ = ["end_peer", "list_programs", "open_endpoint", "set_patience", "start_peer"]

TARGETS = ("shm", "tcp", "link")
TAG, OTHER_TAG = 7, 8
FLOOD = 2000
SIZES = (320_000, 16, 4096, 60_000)
GOOD = 1000
ROUNDS = 60
"""In which a request makes progress, before it counts as one that does not end."""
LENGTH = struct.Struct("<I")


def open_endpoint(target: str, **options: Any) -> Any:
    """An endpoint in a domain of its own."""
    return ofipy.Fabric(info_of(target)).domain(progress="auto").endpoint(**options).enable()


def set_patience() -> None:
    """A peer that was never connected is tried again for a second, and not for longer than a run may take."""
    lib.ofp_param_set(b"CONNECT_TIMEOUT", b"1")


def _send_address(line: socket.socket, address: Any) -> None:
    data = bytes(address)
    line.sendall(LENGTH.pack(len(data)) + data)


def _read_address(line: socket.socket) -> bytes:
    head = line.recv(LENGTH.size, socket.MSG_WAITALL)
    if len(head) < LENGTH.size:
        raise EOFError
    return line.recv(*LENGTH.unpack(head), socket.MSG_WAITALL)


def run_peer(target: str, stage: Stage, line: socket.socket) -> None:
    """The peer: opens, sends its messages and receives as many; it ends when the other side says so."""
    stage.board.arm()
    endpoint = open_endpoint(target)
    _send_address(line, endpoint.address)
    to = endpoint.insert(_read_address(line))
    receives = [endpoint.trecv(tag=TAG) for _ in SIZES]
    sends = [endpoint.tsend(message(number, size), to, tag=TAG) for number, size in enumerate(SIZES, start=1)]
    for request in (*sends, *receives):
        request.wait(timeout=PATIENCE)
    stage.board.disarm()
    line.recv(1)
    endpoint.domain.fabric.close()


def start_peer(
    target: str, stage: Stage, run: Callable[[str, Stage, socket.socket], None] = run_peer
) -> tuple[int, socket.socket]:
    """Fork the peer. Returns its pid, and a line to it."""
    ours, theirs = socket.socketpair()
    pid = os.fork()
    if pid:
        theirs.close()
        return pid, ours
    ours.close()
    try:
        run(target, stage, theirs)
    except (ofipy.FabricError, EOFError, OSError):
        traceback.print_exc()
    os._exit(0)


def exchange(target: str, stage: Stage) -> None:
    """This side: lives on, whatever becomes of the peer."""
    pid, line = start_peer(target, stage)
    line.settimeout(PATIENCE)
    set_patience()
    here, good = open_endpoint(target), open_endpoint(target)
    to_here = good.insert(here.address)
    try:
        try:
            peer = here.insert(_read_address(line))
            _send_address(line, here.address)
        except (EOFError, OSError):
            peer = None
        arrived, was_up = _exchange_with(here, peer, stage) if peer is not None else ([], False)
        # A receive that names the peer ends when its end is known here. Until then others may take what it left behind.
        is_known = not was_up or (
            has_died(pid) and not _finish_receive(stage, here, peer, here.trecv(peer, tag=OTHER_TAG))
        )
        _check_others(here, good, to_here, arrived, is_known, stage)
    finally:
        line.close()
        if not stage.has_fault:
            os.kill(pid, signal.SIGCONT)
        end_peer(pid)
        good.domain.fabric.close()
        here.close(linger=0)
        here.domain.fabric.close()


def end_peer(pid: int) -> None:
    """Have it end, if it has not."""
    if os.waitpid(pid, os.WNOHANG)[0] == 0:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def has_died(pid: int) -> bool:
    """Whether a child has ended; it is collected later."""
    return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def _exchange_with(here: Any, peer: Any, stage: Stage) -> tuple[list[int], bool]:
    """Exchange with the peer. Returns which messages arrived, and whether it was connected."""
    arrived: list[int] = []
    dropped = here.trecv(tag=TAG)
    receives = [here.trecv(peer, tag=TAG) for _ in SIZES[1:]]
    sends = []
    for size in SIZES:
        try:
            sends.append(here.tsend(message(GOOD - size % 7, size), peer, tag=TAG))
        except ofipy.FabricError as error:
            stage.notes.append(f"send: {error}")
    was_up = [_finish(stage, "send", request) for request in sends]
    if not any(was_up):
        # It may still come: receives that name it wait for that.
        for request in receives:
            request.cancel()
    for request in receives:
        if _finish(stage, "receive", request):
            with contextlib.suppress(ofipy.FabricError):
                arrived.append(number_of(request.wait().data))
    # Set aside for it may be a message whose payload is lost by now.
    del dropped
    return arrived, any(was_up)


def _has_ended(request: Any) -> bool:
    """Whether a request ends within so many rounds of progress: on a busy machine seconds pass in which nobody runs."""
    for _ in range(ROUNDS):
        with contextlib.suppress(ofipy.FabricError):
            request.wait(timeout=PATIENCE / ROUNDS)
        if request.done:
            return True
    return False


def _finish(stage: Stage, what: str, request: Any) -> bool:
    """Wait for the end of a request. Returns whether it succeeded, so that the peer has been connected."""
    if not _has_ended(request):
        raise Wrong(f"hang: a {what} that names a dead peer has not ended")
    error = request.exception()
    if error is not None:
        stage.notes.append(f"{what}: {error}")
    return error is None


def _finish_receive(stage: Stage, here: Any, peer: Any, request: Any) -> bool:
    """The same for a receive that names the peer, which was connected.

    If the connection ended and the peer's process was still seen to listen, its end is noticed when something is sent.
    """
    if not _has_ended(request) and here.stats().peers_up == 0:
        with contextlib.suppress(ofipy.FabricError):
            here.tsend(b"", peer, tag=OTHER_TAG).wait(timeout=PATIENCE)
    return _finish(stage, "receive", request)


def _check_others(
    here: Any, good: Any, to_here: Any, arrived: list[int], is_known: bool, stage: Stage
) -> None:
    """Messages of another peer pass, whatever the first one has left behind. `is_known`: so is the end of that one."""
    if arrived != sorted(set(arrived)):
        raise Wrong(f"messages came twice or in another order: {arrived}")
    sending = [good.tsend(message(GOOD + number, 64), to_here, tag=TAG) for number in (1, 2)]
    came: list[int] = []
    while GOOD + 2 not in came:
        try:
            came.append(number_of(here.trecv(tag=TAG).wait(timeout=PATIENCE).data))
        except ofipy.TimedOut:
            raise Wrong(f"lost message: of another peer's only {came} came") from None
        except ofipy.PeerLost as error:
            if is_known:
                raise Wrong(f"a receive that names no peer ends with another's end: {error}") from None
            is_known = True
    if [number for number in came if number > GOOD] != [GOOD + 1, GOOD + 2]:
        raise Wrong(f"messages of another peer came as {came}")
    for request in sending:
        request.wait(timeout=PATIENCE)
    if not stage.has_fault and len(arrived) < len(SIZES) - 1:
        raise Wrong(f"lost message: {arrived} of {len(SIZES)} came from a peer that lives")


def run_flood(target: str, stage: Stage, line: socket.socket) -> None:
    """A peer that sends more than the other side stores, and goes."""
    stage.board.arm()
    endpoint = open_endpoint(target)
    _send_address(line, endpoint.address)
    to = endpoint.insert(_read_address(line))
    sends = []
    with contextlib.suppress(ofipy.TimedOut):
        for number in range(FLOOD):
            sends.append(endpoint.tsend(message(number, 208), to, tag=TAG, room_timeout=0.2))
    # Without closing anything.
    os._exit(0)


def flood(target: str, stage: Stage) -> None:
    """A receive that names the peer ends with it, although nothing of what it sent is received."""
    pid, line = start_peer(target, stage, run_flood)
    line.settimeout(PATIENCE)
    set_patience()
    lib.ofp_param_set(b"ANNOUNCEMENTS", b"60")
    here = open_endpoint(target, unexpected_size=16_384)
    try:
        try:
            peer = here.insert(_read_address(line))
            directed = here.trecv(peer, tag=OTHER_TAG)
            _send_address(line, here.address)
            knock = here.tsend(b"", peer, tag=OTHER_TAG)
        except (EOFError, OSError):
            return
        if _finish(stage, "send", knock):
            _finish_receive(stage, here, peer, directed)
    finally:
        line.close()
        end_peer(pid)
        here.close(linger=0)
        here.domain.fabric.close()


def list_programs() -> list[Program]:
    """The exchange over each target."""
    for target in TARGETS:
        warm(target)
    return [
        Program(f"death/{target}/{name}", Kind.SYSTEM, partial(run, target), lists_blocks=False)
        for target, name, run in (
            *((each, "exchange", exchange) for each in TARGETS),
            ("tcp", "flood", flood),
        )
    ]
