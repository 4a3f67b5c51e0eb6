# SPDX-License-Identifier: BSD-3-Clause
"""What comes over the connection beside the fabric is not believed."""

import errno
import json
import os
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from fabtests.base import channel as channels
from fabtests.base.channel import Channel, told_error
from fabtests.base.program import Failed, NotRun
from fabtests.perf import parties
from fabtests.perf.plan import Plan
from fabtests.perf.workers import Workers
from ofipy.cli.support import deadline

PLAN = Plan(
    test="write_bw", provider="shm", ep_type="rdm", sizes=(64,), iterations=10, duration=None, margin=0.0,
    bidirectional=False, qps=1, processes=1, depth=128, receive_depth=512, post_list=1, moderation=100,
    compare=False, peak=True, pinned=False,
)  # fmt: skip


@pytest.fixture
def ends() -> Iterator[tuple[Channel, socket.socket]]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        there = socket.create_connection(listener.getsockname())
        with Channel(listener.accept()[0]) as here, there:
            yield here, there


@pytest.mark.parametrize("code", [0, 2, 130, True, "1", None, [61], 61.0])
def test_a_peer_does_not_choose_the_exit_code(code: Any) -> None:
    error = told_error({"error": "no\x1b[2J\ud800", "code": code})
    assert isinstance(error, Failed)
    assert (error.exit_code, str(error)) == (1, "no?[2J?")


def test_known_exit_codes_pass() -> None:
    assert isinstance(told_error({"error": "", "code": errno.ENODATA}), NotRun)
    assert told_error({"error": "", "code": 3}).exit_code == 3  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        (b"[" * 100000 + b"\n", "is not of fabtests perf"),
        (b"\xff\n", "is not of fabtests perf"),
        (b'{"rate": "1"}\n', "has no rate"),
    ],
)
def test_what_is_no_message(ends: tuple[Channel, socket.socket], sent: bytes, said: str) -> None:
    here, there = ends
    there.sendall(sent)
    with pytest.raises(Failed, match=said):
        here.receive(rate=float)


def test_a_line_without_end(ends: tuple[Channel, socket.socket], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(channels, "LONGEST", 1000)
    ends[1].sendall(b" " * 2000)
    with pytest.raises(Failed, match="a line of more than 1000 bytes"):
        ends[0].receive()


def test_a_second_line_of_the_same_segment(ends: tuple[Channel, socket.socket]) -> None:
    here, there = ends
    there.sendall(b'{"a": 1}\n{"b": 2}\n')
    assert here.receive() == {"a": 1}
    assert here.has_come
    assert here.receive() == {"b": 2}
    assert not here.has_come


def test_the_deadline_of_the_command_is_no_lost_connection(ends: tuple[Channel, socket.socket]) -> None:
    with pytest.raises(TimeoutError, match=r"not finished within 0\.1 s"), deadline(0.1):
        ends[0].receive()


def test_what_a_killed_process_leaves_is_removed(ends: tuple[Channel, socket.socket]) -> None:
    def leave(_channel: Channel, tell: Any) -> None:
        file = Path(f"/dev/shm/{os.getpid()}:1:1")
        file.touch()
        tell("file", str(file))
        time.sleep(60)

    with suppress(KeyboardInterrupt), Workers(ends[0]) as workers:
        workers.start(leave, ends[0], core=None)
        _, _, name = next(workers.messages())
        assert Path(name).exists()
        raise KeyboardInterrupt
    assert not Path(name).exists()


@pytest.mark.parametrize(
    "wrong",
    [
        {"processes": 0}, {"processes": 257}, {"qps": 10**6}, {"qps": True}, {"iterations": "many"},
        {"sizes": [0]}, {"sizes": [1 << 32]}, {"sizes": []}, {"sizes": 8}, {"sizes": [[]]}, {"ep_type": "raw"},
        {"ep_type": []}, {"provider": 5}, {"provider": "a\x1b"}, {"duration": "x"}, {"margin": -1.0},
        {"moderation": 129}, {"post_list": 1 << 30}, {"receive_depth": 1 << 40}, {"peak": 1},
        {"sizes": [1 << 31], "qps": 1024}, {"more": 1},
    ],
)  # fmt: skip
def test_a_plan_beyond_the_limits(wrong: dict[str, Any]) -> None:
    assert Plan.from_dict(json.loads(json.dumps(PLAN.as_dict()))) == PLAN
    with pytest.raises(ValueError, match=r"is meant|another version"):
        Plan.from_dict({**json.loads(json.dumps(PLAN.as_dict())), **wrong})


def serve_in_background(said: list[BaseException]) -> tuple[int, threading.Thread]:
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]

    def run() -> None:
        try:
            parties.server(listener, PLAN, quiet=True)
        except Failed as error:
            said.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    return port, thread


def test_a_refused_plan_is_told_to_both() -> None:
    said: list[BaseException] = []
    port, thread = serve_in_background(said)
    with Channel(socket.create_connection(("127.0.0.1", port))) as control:
        control.send(plan={**PLAN.as_dict(), "processes": 10**9}, token="t")
        with pytest.raises(Failed, match="processes is '1000000000'; 1 to 256 is meant"):
            control.receive()
    thread.join(10)
    assert "is refused: processes" in str(said[0])


def test_processes_that_do_not_come(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parties, "MEET_SECONDS", 0.5)
    monkeypatch.setattr(parties, "TOKEN_SECONDS", 0.1)
    said: list[BaseException] = []
    port, thread = serve_in_background(said)
    with Channel(socket.create_connection(("127.0.0.1", port))) as control:
        control.send(plan=PLAN.as_dict(), token="the right one")
        control.receive(agreed=bool)
        # A stranger is dropped, whether it says nothing or the wrong thing.
        with (
            socket.create_connection(("127.0.0.1", port)) as silent,
            Channel(socket.create_connection(("127.0.0.1", port))) as stranger,
        ):
            stranger.send(token="\ud800 wrong")
            with pytest.raises(Failed, match=r"closed the connection|is gone"):
                stranger.receive()
            assert silent.recv(1) == b""
        thread.join(10)
    assert str(said[0]) == "the client did not connect its processes within 0.5 s"
