# SPDX-License-Identifier: BSD-3-Clause
"""The proof of a key between RDM endpoints: see docs/explanation/verbs.md."""

import itertools
import os
import re
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import ofipy
from tests.verbs import caller
from tests.verbs.caller import Caller

TIMEOUT = 60
LONG = 300_000
FLOOD = 300
numbers = itertools.count(0x5000)  # of queue pairs that callers claim to have

OpenWithKey = Callable[[bytes | None], ofipy.Endpoint]


@pytest.fixture
def open_with_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[OpenWithKey]:
    """Open endpoints that have this key, or none. They make progress by themselves, and are closed at the end."""
    opened: list[ofipy.Endpoint] = []

    def open_one(key: bytes | None) -> ofipy.Endpoint:
        monkeypatch.delenv("OFIPY_AUTH_KEY_FILE", raising=False)
        if key:
            file = tmp_path / f"key-{len(opened)}"
            file.write_bytes(key)
            file.chmod(0o600)
            monkeypatch.setenv("OFIPY_AUTH_KEY_FILE", str(file))
        opened.append(ofipy.open(provider="verbs", progress="auto"))
        return opened[-1]

    yield open_one
    for ep in opened:
        ep.close()


def call(ep: ofipy.Endpoint, version: int = 1) -> Caller:
    found = re.fullmatch(r"verbs://([0-9.]+):(\d+)", str(ep.address))
    assert found is not None, str(ep.address)
    return Caller(found[1], int(found[2]), version=version)


def resources() -> dict[str, int]:
    listing = subprocess.run(["rdma", "resource", "show"], capture_output=True, text=True, check=True).stdout
    return {name: int(count) for name, count in re.findall(r"\b(qp|mr|cm_id) (\d+)", listing)}


def exchange(one: ofipy.Endpoint, other: ofipy.Endpoint) -> None:
    """A short and a long message, and a write and a read of the other's memory."""
    peer, memory = one.insert(other.address), np.zeros(LONG, np.uint8)
    for tag, size in enumerate((8, LONG)):
        sent = np.arange(size, dtype=np.uint8)
        request = one.tsend(sent, peer, tag=tag, complete="delivery")
        assert np.array_equal(np.frombuffer(other.trecv(tag=tag).wait(timeout=TIMEOUT).data, np.uint8), sent)
        request.wait(timeout=TIMEOUT)
    with other.register(memory, access="remote_read,remote_write") as region:
        one.write(np.full(LONG, 7, np.uint8), peer, region.remote, complete="delivery").wait(timeout=TIMEOUT)
        assert memory.min() == 7
        there = np.zeros(LONG, np.uint8)
        one.read(there, peer, region.remote).wait(timeout=TIMEOUT)
        assert there.min() == 7


# ------------------------------------------------------------------------------------------------------ two endpoints


def test_one_key_both_ways(open_with_key: OpenWithKey) -> None:
    key = os.urandom(32)
    one, other = open_with_key(key), open_with_key(key)
    exchange(one, other)
    exchange(other, one)
    exchange(one, one)


def test_many_that_call_each_other_at_once(open_with_key: OpenWithKey) -> None:
    key = os.urandom(32)
    endpoints = [open_with_key(key) for _ in range(6)]
    sends = [
        one.tsend(bytes([number]), one.insert(other.address), tag=number)
        for number, one in enumerate(endpoints)
        for other in endpoints
        if other is not one
    ]
    for number in range(len(endpoints)):
        for other in endpoints:
            if other is not endpoints[number]:
                assert bytes(other.trecv(tag=number).wait(timeout=TIMEOUT).data) == bytes([number])
    ofipy.wait_all(sends, timeout=TIMEOUT)


def test_a_sent_message_is_closed_when_it_has_arrived(open_with_key: OpenWithKey) -> None:
    key = os.urandom(32)
    one, other = open_with_key(key), open_with_key(key)
    exchange(one, other)
    peer, memory = one.insert(other.address), np.zeros(LONG, np.uint8)
    received = np.zeros(LONG, np.uint8)
    with one.register(memory, access="send"):
        for step in range(6):
            request = one.tsend(memory, peer, tag=9, complete="delivery")
            other.trecv_into(received, tag=9).wait(timeout=TIMEOUT)
            request.wait(timeout=TIMEOUT)
            # By then the receiver's side has registered what it keeps for itself.
            if step == 2:
                before = resources()["mr"]
    # That of `register` is closed; none was added for a message.
    assert resources()["mr"] == before - 1


SIDES = [
    (b"a" * 32, b"b" * 32, "the peer has another key than this side"),
    (b"a" * 32, None, "this side has a key and the peer has none"),
    (None, b"b" * 32, "the peer has a key and this side has none"),
]


@pytest.mark.parametrize(("here", "there", "text"), SIDES)
def test_keys_that_differ(
    open_with_key: OpenWithKey, here: bytes | None, there: bytes | None, text: str
) -> None:
    one, other = open_with_key(here), open_with_key(there)
    receive = other.trecv(tag=1)
    request = one.tsend(b"x", one.insert(other.address), tag=1, complete="delivery")
    with pytest.raises(ofipy.FabricError, match=text) as caught:
        request.wait(timeout=TIMEOUT)
    assert caught.value.errno == 13, caught.value
    assert not receive.done
    receive.cancel()


# ---------------------------------------------------------------------------------------------------- hostile callers


@pytest.fixture
def key() -> bytes:
    return os.urandom(32)


@pytest.fixture
def served(open_with_key: OpenWithKey, key: bytes) -> Iterator[ofipy.Endpoint]:
    """An endpoint with a key that a member uses. In the end no call has cost a queue pair, and it serves as before."""
    ep, member = open_with_key(key), open_with_key(key)
    exchange(member, ep)
    before = resources()["qp"]
    yield ep
    deadline = time.monotonic() + TIMEOUT
    while resources()["qp"] != before and time.monotonic() < deadline:
        time.sleep(0.1)
    assert resources()["qp"] == before
    exchange(member, ep)


@pytest.fixture
def stranger(served: ofipy.Endpoint) -> Iterator[Caller]:
    stranger = call(served)
    yield stranger
    stranger.close()


def test_the_proof_is_that_of_the_page(open_with_key: OpenWithKey, key: bytes) -> None:
    """A caller that is written in Python proves the key, and verifies the endpoint's proof."""
    ep = open_with_key(key)
    member, number = call(ep), next(numbers)
    facts = member.challenge(number)
    made = member.resolve()
    assert member.gids(made) == (facts.caller_gid, facts.acceptor_gid)
    answer = member.request(member.second_request(facts, facts.proof(key, "c", number)), number, made)
    assert answer.accepted
    assert member.verify(facts, key, answer)
    assert not member.verify(facts, key + b"x", answer)
    member.refuse()
    member.close()


def test_without_proof(stranger: Caller) -> None:
    number = next(numbers)
    assert stranger.request(stranger.first_request(has_key=False), number).kind == caller.KEY_HERE
    facts = stranger.challenge(number)
    for kind in caller.OTHER_KEY, caller.LATER:  # the second time no challenge is open
        answer = stranger.request(stranger.second_request(facts, os.urandom(32)), number)
        assert (answer.accepted, answer.kind) == (False, kind)


def test_a_wrong_key(stranger: Caller, key: bytes) -> None:
    number = next(numbers)
    facts = stranger.challenge(number)
    answer = stranger.request(
        stranger.second_request(facts, facts.proof(key[:-1] + b"?", "c", number)), number
    )
    assert (answer.accepted, answer.kind) == (False, caller.OTHER_KEY)


def test_a_proof_of_the_other_role(stranger: Caller, key: bytes) -> None:
    number = next(numbers)
    facts = stranger.challenge(number)
    answer = stranger.request(stranger.second_request(facts, facts.proof(key, "a", number)), number)
    assert (answer.accepted, answer.kind) == (False, caller.OTHER_KEY)


def test_a_foreign_queue_pair(stranger: Caller, key: bytes) -> None:
    number, foreign = next(numbers), next(numbers)
    facts = stranger.challenge(number)
    answer = stranger.request(stranger.second_request(facts, facts.proof(key, "c", number)), foreign)
    assert (answer.accepted, answer.kind) == (False, caller.OTHER_KEY)


def test_a_proof_for_another_address(stranger: Caller, key: bytes) -> None:
    """A member that is led to another endpoint than the one that it calls."""
    number = next(numbers)
    facts = stranger.challenge(number)
    elsewhere = replace(facts, acceptor=(facts.acceptor[0], facts.acceptor[1] ^ 1))
    answer = stranger.request(stranger.second_request(facts, elsewhere.proof(key, "c", number)), number)
    assert (answer.accepted, answer.kind) == (False, caller.OTHER_KEY)


def test_replayed_proofs(open_with_key: OpenWithKey, key: bytes) -> None:
    ep = open_with_key(key)
    member, number = call(ep), next(numbers)
    facts = member.challenge(number)
    proven = member.second_request(facts, facts.proof(key, "c", number))
    assert member.request(proven, number).accepted
    member.refuse()
    # The challenge has ended; and the proof is not valid for another one.
    assert member.request(proven, next(numbers)).kind == caller.LATER
    renewed = member.challenge(number)
    replayed = member.second_request(renewed, facts.proof(key, "c", number))
    assert member.request(replayed, number).kind == caller.OTHER_KEY
    member.close()


def test_a_flood_of_first_requests(served: ofipy.Endpoint, stranger: Caller) -> None:
    """It opens more challenges than one source may have. The fixture's member connects all the same."""
    for _ in range(FLOOD):
        stranger.challenge(next(numbers))
        stranger.library.rdma_destroy_id(stranger.ids.pop())


def test_noise_instead_of_requests(stranger: Caller) -> None:
    for size in (0, 1, 2, 3, 41, 43, 54, 55):
        answer = stranger.request(os.urandom(size), next(numbers))
        assert not answer.accepted


# ------------------------------------------------------------------------------------------------------ other releases


def test_a_caller_of_a_later_release_is_told_under_a_proof(open_with_key: OpenWithKey, key: bytes) -> None:
    ep = open_with_key(key)
    member, number = call(ep, version=9), next(numbers)
    received = ep.trecv(ep.insert(f"verbs://{member.to[0]}:{member.port}"), tag=1)
    facts = member.challenge(number)
    answer = member.request(member.second_request(facts, facts.proof(key, "c", number)), number)
    assert (answer.accepted, answer.kind) == (False, caller.VERSION_REFUSED)
    assert member.verify_refusal(facts, key, answer)
    assert not member.verify_refusal(facts, key + b"x", answer)
    with pytest.raises(
        ofipy.IncompatiblePeer, match=r"speaks version 9 of the rdm protocol, and this side version 1"
    ):
        received.wait(timeout=TIMEOUT)
    member.close()


def test_a_caller_of_a_later_release_that_proves_nothing(open_with_key: OpenWithKey, key: bytes) -> None:
    ep = open_with_key(key)
    stranger, number = call(ep, version=9), next(numbers)
    received = ep.trecv(ep.insert(f"verbs://{stranger.to[0]}:{stranger.port}"), tag=1)
    facts = stranger.challenge(number)
    answer = stranger.request(stranger.second_request(facts, facts.proof(key + b"x", "c", number)), number)
    assert (answer.accepted, answer.kind) == (False, caller.OTHER_KEY)
    assert not received.done
    received.cancel()
    stranger.close()
