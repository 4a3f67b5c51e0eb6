# SPDX-License-Identifier: BSD-3-Clause
"""The door beside the rendezvous, by which both sides learn at once that no version is common.

No time is measured: the deadlines are ten minutes, and what goes through the door is counted.
"""

from __future__ import annotations

import os
import socket
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager

import pytest

import ofipy
from ofipy.jobs import door
from ofipy.jobs.door import Door, Knocker, describe, listen
from ofipy.jobs.greeting import Kind, Run
from ofipy.jobs.launcher import Deadline
from ofipy.jobs.rendezvous import Meeting, Rendezvous
from tests.later_release import LATER, NACK, REFUSED, answering, shm_address, shm_packet, tcp_control
from tests.ports import free_port

# Tests that run side by side look for their servers at ports of their own.
FIRST = free_port()
KEY = b"k" * 32
PATIENCE = 600
SAID = "rank 1 speaks version 200 of the shm protocol, and rank 0 version 3; update ofipy where rank 0 runs"

Join = Callable[..., Rendezvous]

pytestmark = pytest.mark.timeout(120)


@pytest.fixture(autouse=True)
def of_this_host(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OFIPY_INTERFACE", "lo")
    monkeypatch.setenv("OFIPY_CONNECT_TIMEOUT", str(PATIENCE))


@pytest.fixture
def run() -> str:
    return uuid.uuid4().hex


@pytest.fixture
def join(run: str) -> Iterator[Join]:
    with ExitStack() as members:

        def join(rank: int, *, ports: range, key: bytes | None = None) -> Rendezvous:
            names = ("RANK", "WORLD_SIZE")
            meeting = Meeting(run, rank, 2, "localhost", ports, several_hosts=False, host="here", names=names)
            return members.enter_context(closing(Rendezvous(meeting, key, Deadline(PATIENCE))))

        yield join


@contextmanager
def door_of(run: Run, key: bytes | None, heard: list[str]) -> Iterator[None]:
    """A door at the first port, of an endpoint that is somewhere else."""
    with ofipy.open(provider="shm" if key is None else "link") as ep:
        at = listen(ep.address, FIRST, within_host=key is None)
    with closing(Door(at, run, heard.append)):
        yield


@contextmanager
def endpoint_of_a_later_release(key: bytes | None) -> Iterator[None]:
    """What listens at the first port, and refuses every caller for its version."""
    if key is None:
        answer = shm_packet(REFUSED, shm_address(str(FIRST)), LATER, LATER)
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        listener.bind(f"\0ofipy-shm/1/{os.getuid()}/{FIRST}")
        listener.listen()
    else:
        answer = tcp_control(NACK, LATER, LATER)
        listener = socket.create_server(("127.0.0.1", FIRST))
    with answering(listener, answer):
        yield


def answer_to(knocker: Knocker, said: str = SAID) -> int:
    """Knock at the first port, and wait for the answer."""
    knocker.knock(FIRST, said)
    while (port := knocker.heard_at()) is None:
        time.sleep(0.001)
    return port


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> list[Kind]:
    """What has been written through doors."""
    kinds: list[Kind] = []
    write = Run.write

    def count(self: Run, kind: Kind, *rest: object) -> bytes:
        if kind in (Kind.KNOCK, Kind.HEARD):
            kinds.append(kind)
        return write(self, kind, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(Run, "write", count)
    return kinds


@pytest.mark.parametrize("key", [None, KEY])
def test_two_round_trips(key: bytes | None, written: list[Kind]) -> None:
    heard: list[str] = []
    # One address of the host: each of them is knocked at.
    host = None if key is None else "127.0.0.1"
    with door_of(Run("run", key), key, heard), closing(Knocker(Run("run", key), b"n" * 16, host)) as knocker:
        assert answer_to(knocker) == FIRST
    assert heard == [SAID]
    assert written == [Kind.KNOCK, Kind.HEARD] * 2


def test_strangers_are_not_answered() -> None:
    heard: list[str] = []
    ours = Run("run", KEY)
    with door_of(ours, KEY, heard), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
        stranger.settimeout(30)

        def say(blob: bytes) -> None:
            stranger.sendto(blob, ("127.0.0.1", FIRST))

        knock = ours.write(Kind.KNOCK, b"n" * 16, {"said": SAID, "ticket": ""})
        for blob in (
            b"",
            b"OFPR" * 30,
            Run("another run", KEY).write(Kind.KNOCK, b"n" * 16, {"said": SAID, "ticket": ""}),
            Run("run", b"z" * 32).write(Kind.KNOCK, b"n" * 16, {"said": SAID, "ticket": ""}),
            ours.write(Kind.HEARD, b"n" * 16, {"heard": True, "ticket": ""}),
            ours.write(Kind.GREETING, b"n" * 16, {"rank": 1, "size": 2}),
            knock[:-1],
            knock[:-1] + b"?",
        ):
            say(blob)
        # They come in their order, so this answer is the first one.
        say(ours.write(Kind.KNOCK, b"m" * 16, {"said": SAID, "ticket": "of an earlier job"}))
        answer = ours.read_of_any_release(stranger.recv(4096))
        assert answer is not None
        assert answer[:2] == (Kind.HEARD, b"m" * 16)
        assert answer[2]["heard"] is False
    assert heard == []


def test_another_user_is_not_heard(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel says who has sent a datagram; here this process becomes another user in between."""
    name = f"\0ofipy-test/{uuid.uuid4().hex}"
    with closing(door._open_local(name)) as at, closing(door._open_local("")) as sender:
        sender.sendto(b"first", name)
        sender.sendto(b"second", name)
        first = door._receive(at)
        user = os.getuid()
        monkeypatch.setattr(os, "getuid", lambda: user + 1)
        second = door._receive(at)
        assert door._receive(at) is None
    assert first is not None
    assert second is not None
    assert (first[0], second[0]) == (b"first", b"")


@pytest.mark.parametrize("key", [None, KEY])
def test_a_rank_0_of_a_later_release(key: bytes | None, run: str, join: Join) -> None:
    heard: list[str] = []
    protocol = "the shm protocol" if key is None else "the tcp extension"
    with (
        endpoint_of_a_later_release(key),
        door_of(Run(run, key), key, heard),
        pytest.raises(
            ofipy.IncompatiblePeer,
            match=rf"rank 0 at localhost.*: the peer speaks version {LATER} of {protocol}, and this side version \d"
            r".*update ofipy on this side",
        ),
    ):
        join(1, ports=range(FIRST, FIRST + 1), key=key)
    own = 3 if key is None else 1
    assert set(heard) == {
        f"rank 1 speaks version {own} of {protocol}, and rank 0 version {LATER}; update ofipy where rank 1 runs"
    }


def test_a_later_release_of_another_job_is_passed_by(run: str, join: Join) -> None:
    heard: list[str] = []
    with endpoint_of_a_later_release(None), door_of(Run("another job", None), None, heard):
        # Rank 0 comes after this rank has been refused at the first port.
        with ThreadPoolExecutor(1) as pool:
            early = pool.submit(join, 1, ports=range(FIRST, FIRST + 2))
            time.sleep(0.3)
            first = join(0, ports=range(FIRST + 1, FIRST + 2))
            assert early.result().rank == 1
        assert first._server is not None
    assert heard == []


@pytest.mark.parametrize("key", [None, KEY])
@pytest.mark.parametrize("waits", [True, False], ids=["at the fence", "before the fence"])
def test_a_rank_of_a_later_release(key: bytes | None, waits: bool, run: str, join: Join) -> None:
    first = join(0, ports=range(FIRST, FIRST + 1), key=key)
    server = first._server
    assert server is not None
    with (
        ThreadPoolExecutor(1) as pool,
        closing(Knocker(Run(run, key), b"n" * 16, None if key is None else "localhost")) as knocker,
    ):
        told = threading.Event()

        def fence() -> None:
            if not waits:
                told.wait()
            first.fence({}, ["1"], Deadline(PATIENCE))

        ended = pool.submit(fence)
        while waits and not server._arrived:
            time.sleep(0.001)
        assert answer_to(knocker) == FIRST
        told.set()
        with pytest.raises(ofipy.IncompatiblePeer, match=f"{SAID} .*install the same release"):
            ended.result()


def test_a_job_that_is_complete_goes_on(run: str, join: Join) -> None:
    members = [join(rank, ports=range(FIRST, FIRST + 1)) for rank in range(2)]
    with closing(Knocker(Run(run, None), b"n" * 16, None)) as knocker:
        assert answer_to(knocker) == FIRST
    with ThreadPoolExecutor(2) as pool:
        fences = [pool.submit(each.fence, {str(each.rank): b"x"}, ["0"], Deadline(60)) for each in members]
        assert [each.result() for each in fences] == [{"0": b"x"}] * 2


def test_what_rank_0_is_told() -> None:
    said = "the peer speaks versions 1 to 2 of the shm protocol, and this side version 3"
    separate = ofipy.IncompatiblePeer(said, remedy="update ofipy on the peer's side")
    for error in (separate, ofipy.IncompatiblePeer(f"shm: {said}; update ofipy on the peer's side")):
        assert (
            describe(error, 4)
            == "rank 4 speaks version 3 of the shm protocol, and rank 0 versions 1 to 2; update ofipy where rank 0 runs"
        )
    assert describe(ofipy.IncompatiblePeer("otherwise"), 4) == "rank 4 cannot speak with rank 0: otherwise"
