# SPDX-License-Identifier: BSD-3-Clause
"""The rendezvous, several processes' sides of it in one: who is let in, who is refused, by which words."""

from __future__ import annotations

import os
import random
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import ofipy
from ofipy.jobs.greeting import ANSWER_TAG, ASK_TAG, MESSAGE_MAX, Kind, Message, Run, Why, refusal_of
from ofipy.jobs.keys import PROOF_SIZE, proof
from ofipy.jobs.launcher import Deadline
from ofipy.jobs.rendezvous import Meeting, Rendezvous
from ofipy.jobs.rendezvous_server import Server

# Tests that run side by side look for their servers at ports of their own.
FIRST = 29801 + 20 * int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
KEY = b"k" * 32
Join = Callable[..., Rendezvous]


@pytest.fixture
def join() -> Iterator[Join]:
    run, members = uuid.uuid4().hex, list[Rendezvous]()

    def join(
        rank: int, size: int = 2, *, key: bytes | None = None, seconds: float = 10, **changes: Any
    ) -> Rendezvous:
        meeting = {
            "run": run,
            "rank": rank,
            "size": size,
            "server": "localhost",
            "ports": range(FIRST, FIRST + 16),
            "several_hosts": False,
            "host": "here",
            "names": ("RANK", "WORLD_SIZE"),
        }
        members.append(Rendezvous(Meeting(**(meeting | changes)), key, Deadline(seconds)))
        return members[-1]

    yield join
    for member in members:
        member.close()


def fence_all(members: list[Rendezvous], seconds: float = 10) -> list[dict[str, bytes]]:
    names = [str(member.rank) for member in members]
    with ThreadPoolExecutor(len(members)) as pool:
        futures = [
            pool.submit(member.fence, {str(member.rank): b"of %d" % member.rank}, names, Deadline(seconds))
            for member in members
        ]
        return [future.result() for future in futures]


@pytest.mark.parametrize("key", [None, KEY])
def test_everybody_gets_what_the_others_put(join: Join, key: bytes | None) -> None:
    members = [join(rank, 5, key=key) for rank in range(5)]
    for _ in range(2):
        assert fence_all(members) == [{str(rank): b"of %d" % rank for rank in range(5)}] * 5


@pytest.mark.parametrize("key", [None, KEY])
def test_rank_0_may_leave_before_its_answers(
    join: Join, key: bytes | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server has no space for the answers to others until it closes."""
    members = [join(rank, 3, key=key) for rank in range(3)]
    server, leaving, sent = members[0]._server, threading.Event(), list[bytes]()
    send = ofipy.Endpoint.tsend

    def tsend(self: Any, blob: bytes, *arguments: Any, **named: Any) -> Any:
        if self is server.endpoint:
            if sent and not leaving.is_set():
                raise ofipy.TimedOut("no room in the transmit queue")
            sent.append(blob)
        return send(self, blob, *arguments, **named)

    monkeypatch.setattr(ofipy.Endpoint, "tsend", tsend)
    with ThreadPoolExecutor(3) as pool:
        futures = [pool.submit(members[0].fence, {"0": b"of 0"}, ["1"], Deadline(10))]
        while 0 not in server._arrived:  # its answer is the first
            time.sleep(0.001)
        for rank in (1, 2):
            futures.append(
                pool.submit(members[rank].fence, {str(rank): b"of %d" % rank}, ["0"], Deadline(10))
            )
        assert futures[0].result() == {"1": b"of 1"}
        assert len(sent) == 1
        leaving.set()
        members[0].close()
        assert [future.result() for future in futures[1:]] == [{"0": b"of 0"}] * 2
    assert len(sent) == 3


def test_rank_0_waits_for_its_own_server_until_the_deadline(
    join: Join, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where many processes start at once, its thread may run seconds later."""
    hear = Server._hear

    def hear_late(*arguments: Any) -> None:
        time.sleep(0.2)
        hear(*arguments)

    monkeypatch.setattr(Server, "_hear", hear_late)
    monkeypatch.setattr("ofipy.jobs.rendezvous._ANSWER_SECONDS", 0.0)
    assert fence_all([join(rank) for rank in range(2)]) == [{"0": b"of 0", "1": b"of 1"}] * 2


def test_without_a_key_the_network_is_not_asked(join: Join, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OFIPY_INTERFACE", "any")
    assert join(0)._server.endpoint.provider == "shm"
    assert join(0, key=KEY, run="with a key")._server.endpoint.provider == "link"


@pytest.mark.parametrize("key", [None, KEY])
def test_the_server_may_come_last(join: Join, key: bytes | None, caplog: pytest.LogCaptureFixture) -> None:
    with ThreadPoolExecutor(1) as pool:
        early = pool.submit(join, 1, key=key)
        time.sleep(1.5)  # a second is passed over in silence anyway
        members = [join(0, key=key), early.result()]
    assert fence_all(members)[0]["1"] == b"of 1"
    # That it was not there yet is no news, 16 ports at a time.
    said = "".join(record.getMessage() for record in caplog.records if record.levelno > 20)
    assert "lost peer" not in said
    assert "waits for peer" not in said


@pytest.mark.parametrize("key", [None, KEY])
def test_ports_where_nobody_listens_do_not_hold_up_the_search(join: Join, key: bytes | None) -> None:
    ports = range(FIRST, FIRST + 16)
    members = [join(0, key=key, ports=ports[-1:])]
    # A greeting to a port without a server has no end of its own: 15 of them, one after the other, take all the time.
    members.append(join(1, key=key, seconds=10))
    assert fence_all(members)[1] == {"0": b"of 0", "1": b"of 1"}


def test_a_job_that_ends_leaves_its_port_to_another(join: Join) -> None:
    other = join(0, run="another job")
    with ThreadPoolExecutor(1) as pool:
        early = pool.submit(join, 1)
        waited = other._server
        assert waited is not None
        while len(waited.endpoint.av) < 2:  # rank 0 of that job, and rank 1 of ours
            time.sleep(0.01)
        other.close()
        members = [join(0, ports=range(FIRST, FIRST + 1)), early.result()]
    assert fence_all(members)[0]["1"] == b"of 1"


def test_a_late_welcome_is_no_answer_to_a_fence(join: Join) -> None:
    """A process that was not answered in time greets again, and is answered twice."""
    members = [join(0), join(1)]
    for member in members:
        again = member._run.write(Kind.GREETING, member._nonce, {"rank": member.rank, "size": 2})
        member._endpoint.tsend(again, member._peer, tag=ASK_TAG, complete="delivery").wait(timeout=10)
    for _ in range(2):
        assert fence_all(members) == [{"0": b"of 0", "1": b"of 1"}] * 2


def test_another_job_at_the_port_is_passed_by(join: Join) -> None:
    first = join(0, run="another job")
    members = [join(0), join(1)]
    assert members[0]._server.endpoint.address != first._server.endpoint.address
    assert fence_all(members)[1]["0"] == b"of 0"


def of_later_release(blob: bytes, newest: int = 3, earlier: int = 1) -> bytes:
    """A message as a release writes it that speaks versions 2 and 3."""
    head = blob[:4] + bytes([newest, blob[5], earlier]) + blob[7:40]
    return head + proof(KEY, head + bytes(PROOF_SIZE), blob[40 + PROOF_SIZE :]) + blob[40 + PROOF_SIZE :]


def test_a_rank_of_a_later_release_ends_the_job_on_both_sides(join: Join) -> None:
    first = join(0, key=KEY, seconds=60)
    server = first._server
    assert server is not None
    with ofipy.open(provider="link") as later, ThreadPoolExecutor(1) as pool:
        waits = pool.submit(fence_all, [first], 60)
        while not server._arrived:
            time.sleep(0.001)
        peer = later.insert(server.endpoint.address)
        answer = later.trecv(peer, tag=ANSWER_TAG)
        greeting = first._run.write(Kind.GREETING, b"n" * 16, {"rank": 1, "size": 2})
        later.tsend(of_later_release(greeting), peer, tag=ASK_TAG).wait(timeout=10)
        said = bytes(answer.wait(timeout=10).data)
        said_at = time.monotonic()
        with pytest.raises(
            ofipy.IncompatiblePeer,
            match=r"a process of the job, at .*, speaks versions 2 to 3 of .*, and rank 0 version 1 \(install the same",
        ):
            waits.result()
        assert time.monotonic() - said_at < 5
    # What the later release reads of it, before anything that could differ.
    assert (said[:4], said[4], said[5], said[6]) == (b"OFPR", 1, Kind.REFUSED, 0)
    assert refusal_of(said) is Why.VERSION
    with pytest.raises(ofipy.IncompatiblePeer, match="versions 2 to 3"):
        join(1, key=KEY)


def test_a_rank_0_of_a_later_release_is_told_apart_from_another_key(
    join: Join, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = Run.write
    server: list[threading.Thread] = []

    def write_later(self: Run, kind: Kind, nonce: bytes, body: Mapping[str, Any]) -> bytes:
        blob = write(self, kind, nonce, body)
        return of_later_release(blob) if threading.current_thread() in server else blob

    first = join(0, key=KEY)
    assert first._server is not None
    server.append(first._server._thread)
    monkeypatch.setattr(Run, "write", write_later)
    with pytest.raises(
        ofipy.IncompatiblePeer,
        match=r"rank 0 at localhost: the peer speaks versions 2 to 3 of the protocol of the rendezvous, and this side "
        r"version 1 \(update ofipy on this side\)",
    ):
        join(1, key=KEY)


def test_an_unproven_version_does_not_end_the_job(join: Join) -> None:
    members = [join(0, key=KEY), join(1, key=KEY)]
    server = members[0]._server
    assert server is not None
    greeting = Run(members[0]._meeting.run, None).write(Kind.GREETING, b"n" * 16, {"rank": 1, "size": 2})
    with ofipy.open(provider="link") as stranger:
        peer = stranger.insert(server.endpoint.address)
        blob = greeting[:4] + bytes([9]) + greeting[5:]
        stranger.tsend(blob, peer, tag=ASK_TAG, complete="delivery").wait(timeout=5)
        assert fence_all(members)[1] == {"0": b"of 0", "1": b"of 1"}


def test_a_rank_that_is_there_already_is_refused_by_name(join: Join) -> None:
    join(0, 3)
    join(1, 3)
    with pytest.raises(ofipy.ConfigError, match=r"RANK=1.*rank 1 is there already, at .*://"):
        join(1, 3)


def test_a_second_rank_0_is_refused_by_name(join: Join) -> None:
    join(0)
    with pytest.raises(ofipy.ConfigError, match=r"RANK=0.*rank 0 is there already"):
        join(0)


def test_sizes_that_disagree_name_the_variable(join: Join) -> None:
    join(0, 3)
    with pytest.raises(ofipy.ConfigError, match=r"WORLD_SIZE=4.*has 4 processes, and rank 0 says 3"):
        join(1, 4)


def test_another_key_is_refused_by_the_variable(join: Join) -> None:
    join(0, key=KEY)
    for other in (b"another key, also of 32 bytes...", None):
        with pytest.raises(ofipy.AccessDenied, match=r"another key.*OFIPY_AUTH_KEY_FILE"):
            join(1, key=other)


def test_who_does_not_come_is_named(join: Join) -> None:
    members = [join(rank, 4, seconds=1) for rank in (0, 2)]
    started = time.monotonic()
    with pytest.raises(ofipy.TimedOut, match=r"rank 1, 3 did not come.*OFIPY_JOB_TIMEOUT"):
        fence_all(members, seconds=1)
    assert time.monotonic() - started < 3
    with pytest.raises(ofipy.TimedOut, match=r"rank 3 comes late.*without rank 1, 3"):
        join(3, 4)


def test_a_full_transmit_queue_is_not_the_end_of_the_job(join: Join, monkeypatch: pytest.MonkeyPatch) -> None:
    first = join(0)
    server, full = first._server.endpoint, [True] * 3
    send = ofipy.Endpoint.tsend

    def tsend(self: Any, *arguments: Any, **named: Any) -> Any:
        if self is server and full:
            full.pop()
            raise ofipy.TimedOut("no room in the transmit queue")
        return send(self, *arguments, **named)

    monkeypatch.setattr(ofipy.Endpoint, "tsend", tsend)
    members = [first, join(1)]
    assert not full
    assert fence_all(members)[1] == {"0": b"of 0", "1": b"of 1"}


def test_nobody_serves(join: Join) -> None:
    started = time.monotonic()
    with pytest.raises(
        ofipy.TimedOut, match=f"rank 0 was not found at localhost, ports {FIRST} to {FIRST + 15}"
    ):
        join(1, seconds=0.5)
    assert time.monotonic() - started < 3


def test_all_ports_are_taken(join: Join) -> None:
    only = range(FIRST + 16, FIRST + 17)
    join(0, run="another job", ports=only)
    with pytest.raises(ofipy.AddressInUse, match="OFIPY_JOB_PORT"):
        join(0, ports=only)


def test_nothing_is_kept_of_a_stranger(join: Join) -> None:
    members = [join(rank, key=KEY) for rank in range(2)]
    server = members[0]._server
    seed = random.Random(7)
    run = Run("another job", KEY)
    unproven = bytearray(
        Run(members[0]._meeting.run, KEY).write(Kind.GREETING, bytes(16), {"rank": 1, "size": 2})
    )
    unproven[-1] ^= 1
    strange = [
        b"",
        b"OFPR",
        seed.randbytes(500),
        bytes(MESSAGE_MAX + 1),
        bytes(unproven),
        run.write(Kind.GREETING, bytes(16), {"rank": 1, "size": 2}),
        run.write(Kind.FENCE, bytes(16), {"rank": 0, "values": {"0": "00"}, "wanted": []}),
    ]
    proven = Run(members[0]._meeting.run, KEY)
    strange += [
        proven.write(Kind.FENCE, bytes(16), {"rank": rank, "values": values, "wanted": wanted})
        for rank, values, wanted in (([], {}, []), (0, [], {}), (0, {"0": 7}, []), (1, {}, [3]))
    ]
    strange += [
        proven.write(Kind.GREETING, bytes(16), {"rank": rank, "size": 2}) for rank in (2, -1, "1", [1])
    ]
    with ofipy.open(provider="link") as stranger:
        peer = stranger.insert(server.endpoint.address)
        for blob in strange:
            stranger.tsend(blob, peer, tag=ASK_TAG, complete="delivery").wait(timeout=5)
        assert fence_all(members)[1] == {"0": b"of 0", "1": b"of 1"}
        assert sorted(server._members) == [0, 1]


def test_messages_prove_the_key_over_all_they_say() -> None:
    ours = Run("job", KEY)
    blob = ours.write(Kind.GREETING, b"n" * 16, {"rank": 1, "size": 2})
    message = ours.read(blob)
    assert isinstance(message, Message)
    assert (message.kind, message.body) == (Kind.GREETING, {"rank": 1, "size": 2})
    assert Run("job", b"z" * 32).read(blob) is Why.KEY
    assert Run("other", KEY).read(blob) is Why.RUN
    for position in range(len(blob)):
        changed = bytearray(blob)
        changed[position] ^= 4
        assert not isinstance(ours.read(bytes(changed)), Message)
    assert refusal_of(blob) is None
    assert refusal_of(ours.write(Kind.REFUSED, bytes(16), {"why": "key", "text": ""})) is Why.KEY
