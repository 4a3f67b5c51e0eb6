# SPDX-License-Identifier: BSD-3-Clause
"""``ofipy doctor HOST`` and its server: rules on what was measured, streams, keys, and servers that die or lie."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path as File
from typing import Any

import pytest

import ofipy
from ofipy.cli.key import new_key
from ofipy.doctor.finding import Finding, State
from ofipy.doctor.peer.client import Client, Refused
from ofipy.doctor.peer.interface import Path, find_path, read_path
from ofipy.doctor.peer.ladder import judge_measured
from ofipy.doctor.peer.measured import Flow, Measured, Probes
from ofipy.doctor.peer.programs import Programs
from ofipy.doctor.peer.service import DoctorServer
from ofipy.doctor.peer.sockets import (
    accept_stream,
    connect_stream,
    listen_stream,
    read_info,
    receive_for,
    send_for,
)
from ofipy.doctor.peer.wire import pack, parse, read_findings, read_number, read_numbers, read_text
from ofipy.host.tree import Tree
from ofipy.ping.lane import Lane
from ofipy.ping.place import Place
from ofipy.ping.server import open_server
from ofipy.ping.tally import Tally
from ofipy.ping.wire import HELLO, TAG_ANSWER, TAG_ASK, WireError, pack_hello
from tests.host.servers import here, run_command, serving
from tests.ports import free_port

SECONDS = 20
TOKEN = b"0123456789abcdef"


doctor = partial(run_command, "doctor")


def of_rule(document: dict[str, Any], rule: str) -> list[dict[str, Any]]:
    return [each for each in document["checks"] if each["id"] == rule]


def healthy() -> Measured:
    """What two hosts with 100 Gb/s and nothing wrong measure."""
    tally = Tally()
    tally.add("answered", 20e-6)
    path = Path("eth0", "10.0.0.1", 9000, 100_000)
    flow = Flow(
        bytes=12_000_000_000, seconds=1.0, segments=1_000_000, repeated=5, delivered=1_000_000, marked=100
    )
    return Measured(
        peer="node7",
        way="tcp",
        own_providers=["shm", "tcp"],
        peer_providers=["shm", "tcp"],
        round_trips=tally.summarize(),
        clock=(0.001, 0.0001),
        path=path,
        peer_path=replace(path, address="10.0.0.2"),
        probes=Probes([9000, 1500], [9000, 1500], [1500, 9000]),
        raw={"to": flow, "from": flow},
        provider={"to": replace(flow, bytes=11_500_000_000), "from": replace(flow, bytes=11_500_000_000)},
        programs=Programs(["train.py (pid 7)"], bytes=10_500_000_000, seconds=1.0),
    )


def bad(measured: Measured) -> dict[str, Finding]:
    return {each.rule.id: each for each in judge_measured(measured) if each.is_bad}


def slow(measured: Measured, **changes: Any) -> dict[str, Flow]:
    return {"to": replace(measured.raw["to"], **changes), "from": measured.raw["from"]}


class TestRules:
    def test_nothing_is_wrong(self) -> None:
        assert bad(healthy()) == {}

    @pytest.mark.parametrize(
        ("rule", "state", "change"),
        [
            ("host.clock", State.WARNING, lambda m: setattr(m, "clock", (-0.02, 0.001))),
            ("net.port", State.FAILED, lambda m: setattr(m, "lost", "the server was lost")),
            ("net.port", State.FAILED, lambda m: m.unreached.update(verbs="no answer")),
            ("net.mtu", State.FAILED, lambda m: setattr(m, "peer_path", replace(m.path, mtu=1500))),
            ("net.mtu", State.WARNING, lambda m: m.probes.returned.remove(9000)),
            ("ladder.raw", State.WARNING, lambda m: setattr(m, "raw", slow(m, seconds=1.3))),
            ("ladder.raw", State.FAILED, lambda m: setattr(m, "raw", slow(m, error="nothing moved"))),
            (
                "ladder.provider",
                State.WARNING,
                lambda m: m.provider.update(to=replace(m.provider["to"], seconds=1.2)),
            ),
            (
                "ladder.provider",
                State.FAILED,
                lambda m: m.provider.update(to=replace(m.provider["to"], seconds=2.0)),
            ),
            ("ladder.application", State.WARNING, lambda m: setattr(m.programs, "bytes", 7_000_000_000)),
            ("ladder.application", State.FAILED, lambda m: setattr(m.programs, "bytes", 1_000_000_000)),
            ("port.retransmit", State.WARNING, lambda m: setattr(m, "raw", slow(m, repeated=2000))),
            ("port.retransmit", State.FAILED, lambda m: setattr(m, "raw", slow(m, repeated=20_000))),
            ("port.congestion", State.WARNING, lambda m: setattr(m, "raw", slow(m, marked=20_000))),
            ("port.congestion", State.FAILED, lambda m: setattr(m, "raw", slow(m, marked=200_000))),
            (
                "app.way",
                State.WARNING,
                lambda m: (m.own_providers.append("verbs"), m.peer_providers.append("verbs")),
            ),
        ],
    )
    def test_each_alone(self, rule: str, state: State, change: Callable[[Measured], object]) -> None:
        measured = healthy()
        change(measured)
        found = bad(measured)
        assert list(found) == [rule]
        assert found[rule].state is state
        assert found[rule].remedy
        assert found[rule].sources
        assert "node7" in found[rule].place

    def test_few_repetitions_are_no_pattern(self) -> None:
        measured = healthy()
        measured.raw = slow(measured, segments=20, repeated=9)
        assert bad(measured) == {}

    def test_devices_are_compared_with_a_queue_pair(self) -> None:
        measured = healthy()
        measured.way = "verbs"
        measured.provider = slow(measured, seconds=1.5)
        assert "of the bare queue pair" in bad(measured)["ladder.provider"].text

    def test_software_is_not_judged_by_ratios(self) -> None:
        measured = healthy()
        assert measured.path is not None
        measured.path = measured.peer_path = replace(measured.path, megabits=None)
        measured.raw = slow(measured, seconds=100.0)
        assert bad(measured) == {}
        states = {each.state for each in judge_measured(measured) if each.rule.id.startswith("ladder.")}
        assert states == {State.UNJUDGED}

    def test_a_firewall_against_datagrams_is_no_mtu(self) -> None:
        measured = healthy()
        measured.probes = Probes([9000, 1500], [], [])
        assert bad(measured) == {}


class TestWire:
    @pytest.mark.parametrize(
        "data", [b"", b"D", b"D[]", b"E{}", b"D\xff", b"D" + b"[" * 100_000], ids=range(6)
    )
    def test_no_question(self, data: bytes) -> None:
        with pytest.raises(WireError):
            parse(data)

    def test_members_of_other_types_are_absent(self) -> None:
        said: dict[str, Any] = {
            "text": 3,
            "number": "x",
            "truth": True,
            "numbers": {"a": 1},
            "mixed": [1, "2", True],
        }
        assert read_text(said, "text") == ""
        assert read_number(said, "number") is None
        assert read_number(said, "truth") is None
        assert read_number({"number": float("inf")}, "number") is None
        assert read_numbers(said, "numbers") == []
        assert read_numbers(said, "mixed") == [1]
        assert read_path({"path": {"mtu": "x"}}, "path") is None
        assert read_path({"path": [1]}, "path") is None

    def test_findings_of_a_liar(self) -> None:
        said = {
            "findings": [
                3,
                {"id": "net.mtu", "state": "splendid"},
                {"id": "net.mtu", "state": "failed", "finding": "\x1b[31mred", "place": 7, "sources": "x"},
                {
                    "id": "new.rule",
                    "name": "new",
                    "state": "warning",
                    "finding": "later",
                    "sources": [1, "\x1b[2J"],
                },
            ]
        }
        mtu, later = read_findings(said, "node7")
        assert (mtu.rule.id, mtu.text, mtu.place, mtu.sources) == ("net.mtu", "?[31mred", "node7", ())
        assert (later.rule.id, later.text, later.sources) == ("new.rule", "later", ("1", "?[2J"))
        assert read_findings({"findings": "none"}, "node7") == []


class TestSockets:
    @pytest.mark.parametrize("address", ["127.0.0.1", "::1", ""])
    def test_a_stream(self, address: str) -> None:
        received: list[int] = []
        with listen_stream(address) as listener:

            def serve() -> None:
                with accept_stream(listener, TOKEN) as connection:
                    received.append(receive_for(connection, SECONDS))

            thread = threading.Thread(target=serve)
            thread.start()
            port = listener.getsockname()[1]
            # Whoever does not know the token is turned away, and the stream comes all the same.
            with socket.create_connection((address or "127.0.0.1", port)) as stranger:
                stranger.sendall(bytes(len(TOKEN)))
                assert stranger.recv(1) == b""
            with connect_stream(address or "127.0.0.1", port, TOKEN) as connection:
                sent, seconds = send_for(connection, 0.05)
                info = read_info(connection)
            thread.join(SECONDS)
        assert received == [sent]
        assert seconds > 0
        assert info.segments > 0
        assert info.segment > 0

    def test_nobody_comes(self) -> None:
        with listen_stream("127.0.0.1") as listener, pytest.raises(TimeoutError):
            accept_stream(listener, TOKEN, seconds=0.05)

    def test_the_path_to_this_host(self) -> None:
        path = find_path(Tree(), "127.0.0.1", is_guest=False)
        assert path is not None
        assert (path.interface, path.megabits) == ("lo", None)
        assert path.mtu > 1000
        assert find_path(Tree(), "no-such-host.invalid", is_guest=False) is None


class TestCommand:
    @pytest.mark.parametrize("provider", ["shm", "tcp", "link:shm+tcp"])
    def test_nothing_is_found(self, provider: str, tmp_path: File) -> None:
        new_key(tmp_path / "key")
        settings = {"OFIPY_AUTH_KEY_FILE": str(tmp_path / "key"), "OFIPY_PROVIDER": provider}
        with serving("doctor", "--serve", here(), **settings) as server:
            place = f"127.0.0.1:{server.port}"
            document = json.loads(doctor(place, "--seconds", "0.1", "--json", **settings)[0])
            code, _ = server.end()
        assert code == 0
        between = [each for each in document["checks"] if each["place"].startswith(("to ", "from "))]
        assert {each["state"] for each in between} <= {"ok", "unjudged"}
        measured = document["measurements"]
        assert measured["way"] == ("tcp" if provider == "tcp" else "shm")
        assert measured["round_trip_usec"]["min"] > 0
        assert all(measured["provider"][each]["mb_per_sec"] > 0 for each in ("to", "from"))
        if provider == "tcp":
            assert all(measured["raw"][each]["mb_per_sec"] > 0 for each in ("to", "from"))
            assert of_rule(document, "net.mtu")[0]["state"] == "ok"
        assert {"id", "state", "measured", "threshold", "sources", "remedy"} <= between[0].keys()

    def test_the_server_answers_pings_too(self) -> None:
        with serving("doctor", "--serve", here(), OFIPY_PROVIDER="shm") as server:
            ran = subprocess.run(
                [
                    sys.executable,
                    "-P",
                    "-m",
                    "ofipy",
                    "ping",
                    f"127.0.0.1:{server.port}",
                    "-c1",
                    "-pshm",
                    "-W20",
                ],
                capture_output=True,
                timeout=100,
                check=False,
            )
        assert ran.returncode == 0

    def test_a_server_of_pings_only(self) -> None:
        with serving("ping", "--serve", here(), OFIPY_PROVIDER="shm") as server:
            _, error = doctor(f"127.0.0.1:{server.port}", "-pshm", code=1)
        assert "ofipy doctor --serve is meant" in error

    def test_another_key(self, tmp_path: File) -> None:
        keys = [str(tmp_path / name) for name in ("one", "two")]
        for key in keys:
            new_key(File(key))
        with serving(
            "doctor", "--serve", here(), OFIPY_PROVIDER="tcp", OFIPY_AUTH_KEY_FILE=keys[0]
        ) as server:
            place = f"127.0.0.1:{server.port}"
            out, error = doctor(place, "-ptcp", "--json", code=1, OFIPY_AUTH_KEY_FILE=keys[1])
        (port,) = of_rule(json.loads(out), "net.port")
        assert port["state"] == "failed"
        assert "another key" in port["finding"]
        assert "OFIPY_AUTH_KEY_FILE" in port["remedy"]
        assert "port" in error

    def test_no_server(self) -> None:
        out, _ = doctor(f"127.0.0.1:{free_port()}", "-ptcp", "--json", code=3)
        (port,) = of_rule(json.loads(out), "net.port")
        assert port["state"] == "failed"
        assert "is closed" in port["finding"]
        assert "ofipy doctor --serve" in port["remedy"]

    def test_another_program_has_the_port(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            out, _ = doctor(f"127.0.0.1:{listener.getsockname()[1]}", "-ptcp", "--json", code=3)
        assert "does not answer" in of_rule(json.loads(out), "net.port")[0]["finding"]

    @pytest.mark.parametrize("words", [("node7", "--serve"), (":80",), ("node7", "--root", "x")])
    def test_usage(self, words: tuple[str, ...]) -> None:
        assert "Error" in doctor(*words, code=2)[1]


class Double:
    """A server in a thread of this process, and a client that has met it."""

    def __init__(self, answer: Callable[[bytes], bytes] | None = None, provider: str = "shm") -> None:
        place = Place("127.0.0.1", free_port())
        self.ended = threading.Event()
        self.endpoint = open_server(place, provider)
        self._answer = answer
        self._server = DoctorServer(self.endpoint, "127.0.0.1", Tree()) if answer is None else None
        self._thread = threading.Thread(target=self._run)
        self._thread.start()
        self.lane = Lane(place, provider=provider)
        self.lane.meet(SECONDS)
        self.client = Client(self.lane, Tree(), seconds=0.05, is_guest=False)

    def _run(self) -> None:
        if self._server is not None:
            self._server.serve(self.ended.is_set)
            return
        assert self._answer is not None
        while True:
            try:
                message = self.endpoint.trecv(tag=TAG_ASK).wait()
            except ofipy.FabricError:
                return
            asked = bytes(message.data)
            answer = pack_hello(("ping", "doctor")) if asked[:1] == HELLO else self._answer(asked)
            assert message.source is not None
            self.endpoint.tsend(answer, message.source, tag=TAG_ANSWER)

    def leave(self) -> None:
        self.ended.set()
        if self._server is None:
            self.endpoint.close(linger=0)
        self._thread.join(SECONDS)
        assert not self._thread.is_alive()
        self.endpoint.close(linger=0)

    def close(self) -> None:
        self.lane.close()
        self.leave()


@pytest.fixture
def double() -> Iterator[Callable[..., Double]]:
    made: list[Double] = []

    def make(answer: Callable[[bytes], bytes] | None = None, provider: str = "shm") -> Double:
        made.append(Double(answer, provider))
        return made[-1]

    yield make
    for each in made:
        each.close()


class TestPairs:
    """Bare pairs are for devices. A connection over tcp has the same calls."""

    def test_both_directions(self, double: Callable[..., Double]) -> None:
        client = double(provider="tcp").client
        client._begin()
        flows = client._run_flow(client._send_pair), client._run_flow(client._receive_pair)
        assert [each.error for each in flows] == ["", ""]
        assert all(each.bytes >= 1 << 20 and each.rate for each in flows)

    def test_who_does_not_know_the_token(self, double: Callable[..., Double]) -> None:
        client = double(provider="tcp").client
        client._begin()
        client._token = bytes(len(TOKEN))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("ofipy.doctor.peer.queue_pair.PATIENCE", 0.5)
            flow = client._run_flow(client._send_pair)
            assert "refused" in flow.error or "rejected" in flow.error, flow
            assert flow.rate is None
            client._token = bytes(1)  # the server goes on
            assert client._ask("clock")["time"] > 0

    def test_memory_that_is_none(self, double: Callable[..., Double]) -> None:
        client = double(provider="tcp").client
        client._begin()
        for region in ("", "zz", bytes(40).hex(), 7):
            with pytest.raises(Refused, match="lends no memory"):
                client._ask("pair_down", node="127.0.0.1", seconds=0.1, region=region)


class TestServers:
    def test_one_client_at_a_time(self, double: Callable[..., Double]) -> None:
        server = double()
        server.client._begin()
        with Lane(server.lane.place, provider="shm") as lane:
            lane.meet(SECONDS)
            with pytest.raises(Refused, match="another client"):
                Client(lane, Tree(), seconds=0.05, is_guest=False)._begin()
        server.client.finish()
        with Lane(server.lane.place, provider="shm") as lane:
            lane.meet(SECONDS)
            Client(lane, Tree(), seconds=0.05, is_guest=False)._begin()

    @pytest.mark.parametrize("question", ["clock", "raw_up", "end", "nonsense", ""])
    def test_who_has_not_begun_is_refused(self, double: Callable[..., Double], question: str) -> None:
        with pytest.raises(Refused):
            double().client._ask(question)

    def test_the_server_leaves(self, double: Callable[..., Double]) -> None:
        server = double()
        steps: list[str] = []

        def tell(step: str) -> None:
            steps.append(step)
            if step == "clock":
                server.leave()

        server.client.run(tell)
        assert steps[-1] == "clock"
        (found,) = [each for each in server.client.finish() if each.is_bad]
        assert found.rule.id == "net.port"
        assert "lost while measuring clock" in found.text

    @pytest.mark.parametrize(
        "answer", [b"", b"D", b"D[1]", pack({"host": 3}), pack({"token": "zz"})], ids=range(5)
    )
    def test_a_liar(self, double: Callable[..., Double], answer: bytes) -> None:
        with pytest.raises((WireError, ofipy.TimedOut)):
            double(lambda asked: answer).client._begin()

    def test_a_liar_about_the_stream(self, double: Callable[..., Double]) -> None:
        token = pack({"host": "x", "token": TOKEN.hex(), "bytes": 7})
        server = double(lambda asked: asked if asked[:1] == b"E" else token)
        sent: list[ofipy.Request] = []

        def drain(endpoint: ofipy.Endpoint[ofipy.Domain], *_: object) -> int:
            return 1 << 20

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("ofipy.doctor.peer.client.send_messages", drain)
            server.client._begin()
            flow = server.client._send_stream()
        assert sent == []
        assert flow.error == "1048576 bytes were sent, 7 arrived"
        assert flow.rate is None
