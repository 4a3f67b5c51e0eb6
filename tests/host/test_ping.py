# SPDX-License-Identifier: BSD-3-Clause
"""``ofipy ping`` and its server: places, messages, lanes of one host, keys, and servers that die or lie."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import ofipy
from ofipy.cli.key import new_key
from ofipy.ping.lane import Lane, NoServer, Outcome
from ofipy.ping.place import DEFAULT_PORT, Place, parse_place
from ofipy.ping.server import Server, open_server
from ofipy.ping.tally import Tally
from ofipy.ping.wire import (
    BYE,
    ECHO,
    HEADER,
    HELLO,
    TAG_ANSWER,
    TAG_ASK,
    WireError,
    parse_hello,
    parse_versions,
)
from tests.host.servers import here, run_command, serving
from tests.ports import free_port

SECONDS = 20


ping = partial(run_command, "ping")


def ping_json(*words: str, code: int = 0, **environment: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(ping(*words, "--json", code=code, **environment)[0])
    assert document["schema"] == 1
    return document


@pytest.fixture
def key(tmp_path: Path) -> str:
    new_key(tmp_path / "key")
    return str(tmp_path / "key")


class TestPlace:
    @pytest.mark.parametrize(
        ("text", "host", "port"),
        [
            ("node7", "node7", DEFAULT_PORT),
            ("node7:80", "node7", 80),
            ("fd00::7", "fd00::7", DEFAULT_PORT),
            ("[fd00::7]", "fd00::7", DEFAULT_PORT),
            ("[fd00::7]:80", "fd00::7", 80),
            (":80", "", 80),
        ],
    )
    def test_right(self, text: str, host: str, port: int) -> None:
        assert parse_place(text) == Place(host, port)
        assert parse_place(str(parse_place(text))) == Place(host, port)

    @pytest.mark.parametrize(
        "text",
        ["", "node7:", "node7:http", "node7:65536", ":0", "[fd00::7", "[]:80", "[fd00::7]80", "node7:-1"],
    )
    def test_wrong(self, text: str) -> None:
        with pytest.raises(ofipy.InvalidArgument, match="no place"):
            parse_place(text)


class TestWire:
    @pytest.mark.parametrize(
        "data", [b"", b"H", b"H[]", b"H{", b"X{}", b"H" + b"[" * 100_000, b"H\xff"], ids=range(7)
    )
    def test_no_hello(self, data: bytes) -> None:
        with pytest.raises(WireError):
            parse_hello(data)

    @pytest.mark.parametrize(
        "said", [{}, {"protocol": 0}, {"protocol": True}, {"protocol": "1"}, {"protocol": 1, "earlier": -1}]
    )
    def test_no_version(self, said: dict[str, Any]) -> None:
        with pytest.raises(WireError):
            parse_versions(said)


def test_figures() -> None:
    tally = Tally()
    assert tally.summarize().p99_usec is None
    for microseconds in range(1, 101):
        tally.add("answered", microseconds / 1e6)
    tally.add("lost", 0)
    tally.add("wrong", 0)
    summary = tally.summarize()
    assert (summary.sent, summary.answered, summary.lost, summary.wrong) == (102, 100, 1, 1)
    times = (summary.min_usec, summary.average_usec, summary.p99_usec, summary.max_usec)
    assert times == pytest.approx((1, 50.5, 99.01, 100))
    assert summary.loss_percent == pytest.approx(200 / 102)


class TestCommand:
    @pytest.mark.parametrize("provider", ["shm", "tcp"])
    @pytest.mark.parametrize("size", [0, 56, 1 << 20])
    def test_one_provider(self, provider: str, size: int) -> None:
        with serving("ping", "--serve", here(), "-p", provider) as server:
            document = ping_json(
                f"127.0.0.1:{server.port}", "-c5", "-i0", "-W20", "-p", provider, f"-s{size}"
            )
            (lane,) = document["lanes"]
            assert (lane["provider"], lane["sent"], lane["answered"], lane["lost"], lane["wrong"]) == (
                provider,
                5,
                5,
                0,
                0,
            )
            assert 0 < lane["min_usec"] <= lane["average_usec"] <= lane["max_usec"]
            assert lane["p99_usec"] <= lane["max_usec"]
            code, words = server.end()
        assert code == 0
        assert "5 answered, 0 refused" in words

    def test_every_lane_of_a_link(self, key: str) -> None:
        settings = {"OFIPY_AUTH_KEY_FILE": key}
        with serving("ping", "--serve", here(), "-p", "link:shm+tcp", **settings) as server:
            assert "peers prove the key" in server.said
            place = f"127.0.0.1:{server.port}"
            document = ping_json(place, "-c3", "-i0", "-W20", "--all-ways", "--connect", "3", **settings)
            assert {"shm", "tcp"} <= {each["provider"] for each in document["lanes"]}
            assert all(each["answered"] == 3 for each in document["lanes"])
            assert all(each["reason"] for each in document["unused"])
            # Alone it is what a program would use.
            chosen = ping_json(place, "-c1", "-p", "link:shm+tcp", "-W20", **settings)
            assert [each["provider"] for each in chosen["lanes"]] == ["shm"]

    def test_without_a_key_it_is_on_this_host_only(self) -> None:
        with serving("ping", "--serve", f":{free_port()}", "-p", "tcp", OFIPY_AUTH_KEY_FILE="") as server:
            assert server.place.startswith("127.0.0.1:")
            assert "this host only" in server.said

    @pytest.mark.parametrize("own", ["other", "none"])
    def test_another_key(self, key: str, tmp_path: Path, own: str) -> None:
        new_key(tmp_path / "other")
        theirs = str(tmp_path / "other") if own == "other" else ""
        with serving("ping", "--serve", here(), "-p", "tcp", OFIPY_AUTH_KEY_FILE=key) as server:
            _, error = ping(
                f"127.0.0.1:{server.port}", "-c1", "-p", "tcp", code=1, OFIPY_AUTH_KEY_FILE=theirs
            )
        assert "key" in error
        assert "OFIPY_AUTH_KEY_FILE" in error

    @pytest.mark.parametrize("provider", ["shm", "tcp", "link:shm+tcp"])
    def test_no_server(self, provider: str) -> None:
        free = free_port()
        _, error = ping(f"127.0.0.1:{free}", "--connect", "1", "-p", provider, code=3)
        assert f"no server answers at 127.0.0.1:{free}" in error
        assert "ofipy ping --serve" in error

    def test_the_server_dies(self) -> None:
        with serving("ping", "--serve", here(), "-p", "tcp") as server:
            place = f"127.0.0.1:{server.port}"
            with client(place, "-i0.01", "-W0.5", "-p", "tcp") as process:
                assert process.stdout is not None
                assert "number=1 time=" in process.stdout.readline()
                server.kill()
                lines = iter(process.stdout.readline, "")
                assert any("lost" in line for line in lines)
                process.send_signal(signal.SIGINT)
                rest, error = process.communicate(timeout=SECONDS)
        assert "round trips" in rest
        assert "lost" in error
        assert process.returncode == 1

    def test_ctrl_c_prints_the_summary(self) -> None:
        with serving("ping", "--serve", here(), "-p", "shm") as server:
            with client(f"127.0.0.1:{server.port}", "-p", "shm", "-W20", "-i0.01") as process:
                assert process.stdout is not None
                assert "number=1" in process.stdout.readline()
                process.send_signal(signal.SIGINT)
                rest, error = process.communicate(timeout=SECONDS)
            assert process.returncode == 0, error
            assert "round trips" in rest
            code, words = server.end(signal.SIGINT)
        assert code == 0
        assert "answered" in words

    @pytest.mark.parametrize(
        "words", [(), ("node7", "--serve"), ("node7:http",), (":80",), ("node7", "--all-ways", "-p", "shm")]
    )
    def test_usage(self, words: tuple[str, ...]) -> None:
        _, error = ping(*words, code=2)
        assert "Error" in error


class client:
    """A client that runs until it is told to end."""

    def __init__(self, *words: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-u", "-P", "-m", "ofipy", "ping", *words],
            env=os.environ | {"OFIPY_LOG": "error"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> subprocess.Popen[str]:
        return self._process

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdout, self._process.stderr):
            if stream is not None:
                stream.close()


class Liar:
    """A server whose answers a function makes."""

    def __init__(self, answer: Callable[[bytes], list[bytes]]) -> None:
        self.place = Place("127.0.0.1", free_port())
        self.endpoint = ofipy.open(self.place.port, provider="shm")
        self._answer = answer
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        while True:
            try:
                message = self.endpoint.trecv(tag=TAG_ASK).wait()
            except ofipy.FabricError:
                return
            asked = bytes(message.data)
            if asked == BYE:
                continue
            for each in honest_hello() if asked[:1] == HELLO else self._answer(asked):
                assert message.source is not None
                self.endpoint.tsend(each, message.source, tag=TAG_ANSWER)

    def close(self) -> None:
        self.endpoint.close(linger=0)
        self._thread.join(SECONDS)
        assert not self._thread.is_alive()


def honest_hello() -> list[bytes]:
    return [HELLO + json.dumps({"protocol": 1, "earlier": 0, "serves": ["ping"]}).encode()]


@pytest.fixture
def lying() -> Iterator[Callable[[Callable[[bytes], list[bytes]]], Lane]]:
    opened: list[Any] = []

    def lie(answer: Callable[[bytes], list[bytes]]) -> Lane:
        liar = Liar(answer)
        opened.append(liar)
        lane = Lane(liar.place, provider="shm", size=8)
        opened.append(lane)
        lane.meet(SECONDS)
        return lane

    yield lie
    for each in reversed(opened):
        each.close()


Lying = Callable[[Callable[[bytes], list[bytes]]], Lane]


class TestLiars:
    def test_other_contents(self, lying: Lying) -> None:
        lane = lying(lambda asked: [asked[:-1] + bytes([asked[-1] ^ 1])])
        assert lane.ping(SECONDS)[0] is Outcome.WRONG
        assert "1 of 25 bytes differ, the first at 24" in lane.remark

    @pytest.mark.parametrize("answer", [b"", b"E", b"x" * 100])
    def test_another_length(self, lying: Lying, answer: bytes) -> None:
        lane = lying(lambda asked: [answer])
        assert lane.ping(SECONDS)[0] is Outcome.WRONG
        assert f"an answer of {len(answer)} bytes" in lane.remark

    def test_a_message_that_was_never_sent(self, lying: Lying) -> None:
        lane = lying(
            lambda asked: [HEADER.pack(ECHO, HEADER.unpack_from(asked)[1], 7) + asked[HEADER.size :]]
        )
        assert lane.ping(SECONDS)[0] is Outcome.WRONG

    def test_too_long(self, lying: Lying) -> None:
        lane = lying(lambda asked: [bytes(3 << 20)])
        outcome, _ = lane.ping(SECONDS)
        assert outcome is not Outcome.ANSWERED
        assert lane.remark

    def test_late_answers_count_once(self, lying: Lying) -> None:
        asked: list[bytes] = []

        def answer(message: bytes) -> list[bytes]:
            asked.append(message)
            # The first is not answered, the second with the first, twice; the third rightly.
            return [] if len(asked) == 1 else [asked[0], asked[0]] if len(asked) == 2 else [message]

        lane = lying(answer)
        assert lane.ping(0.05)[0] is Outcome.LOST
        assert lane.ping(SECONDS)[0] is Outcome.WRONG
        assert lane.ping(SECONDS)[0] is Outcome.ANSWERED
        summary = lane.tally.summarize()
        assert (summary.lost, summary.late, summary.wrong, summary.answered) == (1, 1, 1, 1)

    def test_another_version(self) -> None:
        liar = Liar(lambda asked: [])
        try:
            said = [HELLO + json.dumps({"protocol": 9, "earlier": 2, "serves": ["ping"]}).encode()]
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(f"{__name__}.honest_hello", lambda: said)
                with Lane(liar.place, provider="shm") as lane, pytest.raises(ofipy.IncompatiblePeer):
                    lane.meet(SECONDS)
        finally:
            liar.close()


class TestServer:
    @pytest.fixture
    def server(self) -> Iterator[Server]:
        ended = threading.Event()
        with Server(open_server(Place("", free_port()), "shm")) as server:
            thread = threading.Thread(target=server.serve, args=(ended.is_set,))
            thread.start()
            yield server
            ended.set()
            thread.join(SECONDS)
            assert not thread.is_alive()

    def test_what_is_no_message_is_refused(self, server: Server) -> None:
        with ofipy.open(provider="shm") as ep:
            peer = ep.insert(server.endpoint.address)
            for data in (b"", b"?", b"E", b"E" + bytes(15), b"Hello", bytes(2 << 20)):
                ep.tsend(data, peer, tag=TAG_ASK).wait(timeout=SECONDS)
            good = HEADER.pack(ECHO, 1, 2) + b"good"
            answer = ep.trecv(peer, tag=TAG_ANSWER)
            ep.tsend(good, peer, tag=TAG_ASK).wait(timeout=SECONDS)
            assert bytes(answer.wait(timeout=SECONDS).data) == good
        assert (server.answered, server.refused) == (1, 6)

    def test_clients_that_leave_are_removed(self, server: Server) -> None:
        place = Place("127.0.0.1", int(str(server.endpoint.address).rpartition(":")[2]))
        for _ in range(3):
            with Lane(place, provider="shm") as lane:
                lane.meet(SECONDS)
                assert lane.ping(SECONDS)[0] is Outcome.ANSWERED
        with Lane(place, provider="shm") as last:
            last.meet(SECONDS)
            assert len(server._unsent) == 1

    def test_nobody_waits_for_ever(self) -> None:
        place = Place("127.0.0.1", free_port())
        with (
            ofipy.open(place.port, provider="shm"),
            Lane(place, provider="shm") as lane,
            pytest.raises(NoServer),
        ):
            lane.meet(0.2)
