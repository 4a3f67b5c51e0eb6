# SPDX-License-Identifier: BSD-3-Clause
"""Matching against a plain list: hypothesis invents sends, receives, cancels, holds and looks, and compares."""

import time
from dataclasses import dataclass, field

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, precondition, rule
from hypothesis.stateful import run_state_machine_as_test as run_machine
from sides import Target

import ofipy

SENDERS = 3
TAGS = (0, 1, 2, 0x10, 0x11, 2**63, 2**64 - 1)
MASKS = (0, 0, 0, 1, 0x11, 2**63, 2**64 - 1)
SIZES = (0, 1, 9, 96, 97, 5000, 70_000)
CAPACITIES = (200, 6000, 80_000)
MIN_MULTI_RECV = 64
TIMEOUT = 5
# Of one test. A busy machine that emulates another takes a second for each.
EXAMPLES = 25


@dataclass(eq=False)
class Posted:
    """A receive of the model."""

    request: ofipy.Request
    room: bytearray | None
    source: int | None
    tag: int
    ignore: int
    message: "Sent | None" = None

    def fits(self, message: "Sent") -> bool:
        return (self.source is None or self.source == message.source) and not (
            self.tag ^ message.tag
        ) & ~self.ignore


@dataclass(eq=False)
class Sent:
    """A message of the model."""

    number: int
    source: int
    tag: int
    payload: bytes


@dataclass(eq=False)
class PostedMany(Posted):
    """A multi-receive buffer of the model."""

    capacity: int = 0
    used: int = 0
    messages: list[tuple[int, "Sent"]] = field(default_factory=list)
    """What lies in it, and where."""
    taken: list[ofipy.MessageView | None] = field(default_factory=list)
    """What came out of it; None for a message that was longer than all of it."""

    @property
    def many(self) -> ofipy.MultiReceive:
        assert isinstance(self.request, ofipy.MultiReceive)
        return self.request

    def has_room(self, message: "Sent") -> bool:
        return not self.used or len(message.payload) <= self.capacity - self.used

    def put(self, message: "Sent") -> bool:
        """Whether it takes more afterwards."""
        self.messages.append((self.used, message))
        self.used += len(message.payload)
        return self.capacity - self.used >= MIN_MULTI_RECV

    def take(self) -> None:
        """Take the messages that lie in it."""
        while len(self.taken) < len(self.messages):
            try:
                view = self.many.next(timeout=TIMEOUT)
            except ofipy.Truncated:
                view = None
            else:
                assert view is not None
            self.taken.append(view)


@dataclass
class Model:
    """Posted receives and unexpected messages, in order; the definition of matching."""

    posted: list[Posted] = field(default_factory=list)
    unexpected: list[Sent] = field(default_factory=list)
    held: int = 0
    """Messages set aside for a receive of unknown size, and not received yet."""

    def send(self, message: Sent) -> None:
        """A message arrives, or comes back to its place in the order of arrival."""
        found = next((receive for receive in self.posted if receive.fits(message)), None)
        if found is None:
            self.unexpected.append(message)
            self.unexpected.sort(key=lambda each: each.number)
        elif isinstance(found, PostedMany):
            if not found.has_room(message):
                self.posted.remove(found)
                self.send(message)
            elif not found.put(message):
                self.posted.remove(found)
        else:
            self.held += found.room is None
            self.posted.remove(found)
            found.message = message

    def post(self, receive: Posted) -> None:
        receive.message = next((message for message in self.unexpected if receive.fits(message)), None)
        if receive.message is None:
            self.posted.append(receive)
        else:
            self.unexpected.remove(receive.message)
            self.held += receive.room is None

    def post_many(self, receive: PostedMany) -> None:
        for message in [each for each in self.unexpected if receive.fits(each)]:
            if not receive.has_room(message):
                return
            self.unexpected.remove(message)
            if not receive.put(message):
                return
        self.posted.append(receive)


class Matching(RuleBasedStateMachine):
    """One receiver and three senders, all endpoints of one domain unless they are of two providers."""

    target: Target
    speaking: int = SENDERS
    """How many of the senders send."""
    sources: str = "mixed"
    """Which receives there are: for any source, for a named one, or both."""
    receives = Bundle("receives")

    def __init__(self) -> None:
        super().__init__()
        self.receiver = self.first = first = self.target.side(1).open()
        if self.target.other is not None:
            self.first = first = self.target.side(0).open(progress="auto")
        self.senders = [first.domain.endpoint(cq=first.cq, av=first.av).enable() for _ in range(SENDERS)]
        self.peers = [self.receiver.insert(sender.address) for sender in self.senders]
        self.there = first.insert(self.receiver.address)
        self.model, self.count = Model(), 0
        self.running: list[ofipy.Request] = []
        self.buffers: list[PostedMany] = []

    def chosen(self, source: int | None) -> int | None:
        if self.sources == "any":
            return None
        return 0 if source is None and self.sources == "named" else source

    @property
    def holds(self) -> bool:
        return not self.receiver.info.offloads_matching

    @property
    def multi(self) -> bool:
        return ofipy.Cap.MULTI_RECV in self.receiver.info.caps

    def state(self) -> tuple[int, int]:
        """Receives without a message and messages without a receive, as the core counts them."""
        counters = self.receiver.stats()
        return counters.posted_receives, counters.unexpected_messages

    @rule(sender=st.integers(0, SENDERS - 1), tag=st.sampled_from(TAGS), size=st.sampled_from(SIZES))
    def send(self, sender: int, tag: int, size: int) -> None:
        sender %= self.speaking
        self.count += 1
        payload = self.count.to_bytes(4, "little") + bytes([self.count % 256]) * size
        self.running.append(self.senders[sender].tsend(payload, self.there, tag=tag))
        self.model.send(Sent(self.count, sender, tag, payload))
        self.settle()

    def settle(self) -> None:
        """Let everything arrive, so that real time and model time agree on the order between senders."""
        # A buffer for many shows in no counter that a message has come.
        for each in self.buffers:
            each.take()
        if self.holds:
            expected, deadline = len(self.model.unexpected) + self.model.held, time.monotonic() + TIMEOUT
            while (now := self.state()) != (len(self.model.posted), expected):
                assert time.monotonic() < deadline, f"{now} receives and messages, not {expected}"
                self.receiver.domain.progress()
        else:
            for _ in range(20):
                self.receiver.domain.progress()

    @rule(
        target=receives,
        source=st.none() | st.integers(0, SENDERS - 1),
        tag=st.sampled_from(TAGS),
        ignore=st.sampled_from(MASKS),
        known=st.booleans(),
    )
    def receive(self, source: int | None, tag: int, ignore: int, known: bool) -> Posted:
        source = self.chosen(source)
        peer = None if source is None else self.peers[source]
        room = bytearray(max(SIZES) + 4) if known or not self.holds else None
        request: ofipy.Request
        if room is None:
            request = self.receiver.trecv(peer, tag=tag, ignore=ignore)
        else:
            request = self.receiver.trecv_into(room, peer, tag=tag, ignore=ignore)
        posted = Posted(request, room, source, tag, ignore)
        self.model.post(posted)
        self.settle()
        return posted

    @precondition(lambda self: self.multi)
    @rule(
        target=receives,
        source=st.none() | st.integers(0, SENDERS - 1),
        tag=st.sampled_from(TAGS),
        ignore=st.sampled_from(MASKS),
        capacity=st.sampled_from(CAPACITIES),
    )
    def receive_many(self, source: int | None, tag: int, ignore: int, capacity: int) -> Posted:
        source = self.chosen(source)
        peer = None if source is None else self.peers[source]
        request = self.receiver.trecv_many(bytearray(capacity), peer, tag=tag, ignore=ignore)
        posted = PostedMany(request, None, source, tag, ignore, capacity=capacity)  # type: ignore[arg-type]
        self.model.post_many(posted)
        self.buffers.append(posted)
        self.settle()
        return posted

    def check_many(self, posted: PostedMany) -> None:
        """It has what the model says, each message in its place, and no more; then it is cancelled."""
        posted.take()
        self.buffers.remove(posted)
        # Short ones may be there before a long one that came first.
        posted.taken.sort(key=lambda view: view.offset if view is not None else 0)
        for (offset, message), got in zip(posted.messages, posted.taken, strict=True):
            size = len(message.payload)
            assert (got is None) is (offset + size > posted.capacity)
            if got is None:
                continue
            assert (got.offset, got.length, got.tag) == (offset, size, message.tag)
            assert bytes(got) == message.payload
            assert got.source == self.peers[message.source]
        if posted in self.model.posted:
            self.model.posted.remove(posted)
            assert posted.many.cancel()
        assert posted.many.next(timeout=TIMEOUT) is None

    @rule(posted=consumes(receives))
    def check(self, posted: Posted) -> None:
        """A receive has what the model says, or nothing yet; then it is cancelled."""
        if isinstance(posted, PostedMany):
            self.check_many(posted)
        elif posted.message is None:
            assert not posted.request.test()
            assert posted.request.cancel()
            self.model.posted.remove(posted)
            with pytest.raises(ofipy.Canceled):
                posted.request.wait(timeout=TIMEOUT)
        else:
            self.compare(posted)

    @precondition(lambda self: self.holds)
    @rule(posted=consumes(receives))
    def give_back(self, posted: Posted) -> None:
        """Cancelling a receive of unknown size that holds a message returns it to its place."""
        if isinstance(posted, PostedMany) or posted.room is not None or posted.message is None:
            self.check(posted)
            return
        assert posted.request.cancel()
        with pytest.raises(ofipy.Canceled):
            posted.request.wait(timeout=TIMEOUT)
        self.model.held -= 1
        self.model.send(posted.message)

    @precondition(lambda self: self.holds)
    @rule(
        source=st.none() | st.integers(0, SENDERS - 1),
        tag=st.sampled_from(TAGS),
        ignore=st.sampled_from(MASKS),
    )
    def probe(self, source: int | None, tag: int, ignore: int) -> None:
        look = Posted(None, None, source, tag, ignore)  # type: ignore[arg-type]
        expected = next((message for message in self.model.unexpected if look.fits(message)), None)
        found = self.receiver.probe(None if source is None else self.peers[source], tag=tag, ignore=ignore)
        if expected is None:
            assert found is None
        else:
            assert found is not None
            assert (found.length, found.tag) == (len(expected.payload), expected.tag)
            assert found.source == self.peers[expected.source]

    def compare(self, posted: Posted) -> None:
        message = posted.message
        assert message is not None
        got = posted.request.wait(timeout=TIMEOUT)
        self.model.held -= posted.room is None
        payload = got.data if posted.room is None else posted.room[: got.length]
        assert bytes(payload) == message.payload
        assert (got.tag, got.source) == (message.tag, self.peers[message.source])

    def teardown(self) -> None:
        """Receive the rest, in the order in which it arrived."""
        try:
            for posted in list(self.model.posted):
                assert posted.request.cancel()
            for message in self.model.unexpected:
                room = bytearray(max(SIZES) + 4)
                peer = self.peers[message.source] if self.sources == "named" else None
                got = self.receiver.trecv_into(room, peer, ignore=2**64 - 1).wait(timeout=TIMEOUT)
                assert bytes(room[: got.length]) == message.payload
        finally:
            self.first.fabric.close(linger=0)
            self.receiver.fabric.close(linger=0)


def run(target: Target, **options: object) -> None:
    machine = type("Machine", (Matching,), {"target": target} | options)
    run_machine(
        machine,
        settings=settings(
            max_examples=EXAMPLES,
            stateful_step_count=40,
            suppress_health_check=list(HealthCheck),
            database=None,
        ),
    )


@pytest.mark.pairs
@pytest.mark.parametrize(
    "sources",
    [
        pytest.param(sources, id=f"{sources}-{part}")
        for sources, parts in (("any", 2), ("named", 2), ("mixed", 4))
        for part in range(parts)
    ],
)
def test_matching_is_what_a_list_does(target: Target, sources: str) -> None:
    # Where the transport matches, nothing shows in which order messages of different senders arrive.
    speaking = (
        1
        if target.side(1).info().offloads_matching and not target.in_process and sources != "named"
        else SENDERS
    )
    run(target, speaking=speaking, sources=sources)
