# SPDX-License-Identifier: BSD-3-Clause
"""The fuzzer of the Python interface: a hypothesis state machine that draws steps, which another process takes.

A crash or a hang of that process is a failure like another one: it is shrunk, and tried first the next time.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule
from other_side import Side
from steps import Ref, Step

SIZES = st.sampled_from((16, 48, 4096, 60_000, 320_000))
FLAGS = st.booleans()
ACCESS = (
    "send|remote_read",
    "recv|remote_read|remote_write",
    "remote_read|remote_write",
    "send",
    "recv",
)
NONSENSE = st.sampled_from(
    (
        *(None, True, -1, 0, 1, 2**63, 2**64, 1.5, float("nan"), float("inf")),
        *("", "shm", "localhost:1", b"", b"x" * 60, (), [], {}),
    )
)
KINDS = ("domain", "endpoint", "peer", "part", "region", "remote", "operation", "listener")


@dataclass(frozen=True)
class Pick:
    """One of the objects of a kind that were made so far."""

    kind: str
    place: int


def pick(*kinds: str) -> st.SearchStrategy[Pick]:
    """An object of one of these kinds, the newer ones too."""
    return st.builds(Pick, st.sampled_from(kinds), st.integers(0, 15))


ANYTHING = st.one_of(pick(*KINDS), NONSENSE)


def mostly(wanted: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """What is meant, and seldom something else."""
    return st.integers(0, 15).flatmap(lambda drawn: ANYTHING if drawn == 15 else wanted)


TAGS = mostly(st.sampled_from((0, 1, 2**64 - 1)))
PEERS = mostly(st.one_of(pick("peer"), pick("peer"), st.none()))
# Seldom an interrupt, and then mostly while the call is within the library.
# Without, failures are ours: Ctrl-C inside the standard library can leave a lock of its own taken (standard_locks.py).
ALARMS = (
    st.none()
    if os.environ.get("OFIPY_FUZZ_INTERRUPTS") == "no"
    else st.one_of(st.none(), st.none(), st.none(), st.floats(0, 0.0002), st.floats(0, 0.01))
)


def draw_machine(targets: list[str], side: Side) -> type[RuleBasedStateMachine]:
    """The state machine over these providers, whose steps `side` takes."""

    class Machine(RuleBasedStateMachine):
        def __init__(self) -> None:
            super().__init__()
            self._known: dict[str, list[Ref]] = {kind: [] for kind in KINDS}
            self._journal: list[str] = []

        def _resolve(self, value: Any) -> Any:
            if not isinstance(value, Pick):
                return value
            known = self._known[value.kind]
            return known[value.place % len(known)] if known else None

        def _step(
            self, verb: str, *arguments: Any, makes: str = "", after: float | None = None, **options: Any
        ) -> Step:
            name = f"{makes}{len(self._journal)}" if makes else ""
            given = tuple(map(self._resolve, arguments))
            return Step(verb, given, {key: self._resolve(each) for key, each in options.items()}, name, after)

        def _take(self, *steps: Step) -> list[str]:
            self._journal.append(" | ".join(map(repr, steps)))
            try:
                outcomes = side.take(*steps)
            except AssertionError as error:
                # Once more for those that do not happen again, of which hypothesis says only that.
                side.failure = "\n".join([str(error), "the steps were:", *self._journal])
                raise
            self._journal[-1] += f"  → {', '.join(outcomes)}"
            return outcomes

        def _do(self, verb: str, *arguments: Any, **options: Any) -> None:
            step = self._step(verb, *arguments, **options)
            if self._take(step) == ["ok"]:
                self._known[step.name.rstrip("0123456789")].append(Ref(step.name))

        def teardown(self) -> None:
            self._take()

        # ----------------------------------------------------------------------------------------- making

        @initialize(
            names=st.lists(st.sampled_from(targets), min_size=2, max_size=2),
            progress=st.sampled_from(("auto", "manual")),
        )
        def begin(self, names: list[str], progress: str) -> None:
            """Two domains, maybe of one provider, each with what most steps need."""
            for number, target in enumerate(names):
                self._do("domain", target, makes="domain", progress=progress)
                domain = Pick("domain", number)
                for _ in range(2):
                    self._do("endpoint", domain, makes="endpoint")
                for one, other in ((0, 1), (1, 0), (0, 0)):
                    ends = Pick("endpoint", 2 * number + one), Pick("endpoint", 2 * number + other)
                    self._do("insert", *ends, makes="peer")
                for access in ACCESS[:2]:
                    self._do("register", domain, 4096, access, makes="region")
                self._do("remote", Pick("region", 2 * number + 1), makes="remote")

        @rule(
            domain=mostly(pick("domain")),
            after=ALARMS,
            option=st.sampled_from(("", "cq", "send_cq", "av", "eq", "rx", "tx_size", "complete", "request")),
            value=ANYTHING,
        )
        def endpoint(self, domain: Any, after: float | None, option: str, value: Any) -> None:
            options = {option: value} if option else {}
            self._do("endpoint", domain, makes="endpoint", after=after, **options)

        @rule(
            domain=mostly(pick("domain")),
            kind=st.sampled_from(("cq", "av", "counter", "event_queue", "receive_context")),
            after=ALARMS,
        )
        def part(self, domain: Any, kind: str, after: float | None) -> None:
            self._do("part", domain, kind, makes="part", after=after)

        @rule(name=st.sampled_from(targets), threading=st.sampled_from(("safe", "domain")))
        def domain(self, name: str, threading: str) -> None:
            self._do("domain", name, makes="domain", threading=threading)

        @rule(endpoint=mostly(pick("endpoint")), other=mostly(pick("endpoint")), after=ALARMS)
        def insert(self, endpoint: Any, other: Any, after: float | None) -> None:
            self._do("insert", endpoint, other, makes="peer", after=after)

        @rule(endpoint=mostly(pick("endpoint")), peer=PEERS)
        def remove(self, endpoint: Any, peer: Any) -> None:
            self._do("remove", endpoint, peer)

        @rule(domain=mostly(pick("domain")), size=SIZES, access=st.sampled_from(ACCESS), after=ALARMS)
        def register(self, domain: Any, size: int, access: str, after: float | None) -> None:
            self._do("register", domain, size, access, makes="region", after=after)

        @rule(domain=mostly(pick("domain")), size=SIZES, after=ALARMS)
        def empty(self, domain: Any, size: int, after: float | None) -> None:
            self._do("empty", domain, size, makes="region", after=after)

        @rule(region=mostly(pick("region")))
        def remote(self, region: Any) -> None:
            self._do("remote", region, makes="remote")

        # --------------------------------------------------------------------------------------- messages

        @rule(
            endpoint=mostly(pick("endpoint")),
            peer=PEERS,
            how=st.sampled_from(("bytes", "array", "list", "prepared", "untagged")),
            size=SIZES,
            tag=TAGS,
            complete=st.sampled_from((None, None, "transmit", "delivery", "match", "never")),
            after=ALARMS,
        )
        def send(self, endpoint: Any, peer: Any, **options: Any) -> None:
            self._do("send", endpoint, peer, makes="operation", **options)

        @rule(
            endpoint=mostly(pick("endpoint")),
            region=mostly(pick("region")),
            peer=PEERS,
            raw=FLAGS,
            tag=TAGS,
            after=ALARMS,
        )
        def send_region(self, endpoint: Any, region: Any, peer: Any, **options: Any) -> None:
            self._do("send_region", endpoint, region, peer, makes="operation", **options)

        @rule(
            endpoint=mostly(pick("endpoint")),
            peer=PEERS,
            how=st.sampled_from(("any", "into", "untagged", "list", "prepared", "many")),
            size=SIZES,
            tag=TAGS,
            ignore=mostly(st.sampled_from((0, 2**64 - 1))),
            after=ALARMS,
        )
        def receive(self, endpoint: Any, peer: Any, **options: Any) -> None:
            self._do("receive", endpoint, peer, makes="operation", **options)

        @rule(endpoint=mostly(pick("endpoint")), tag=TAGS, discard=FLAGS, after=ALARMS)
        def probe(self, endpoint: Any, **options: Any) -> None:
            self._do("probe", endpoint, **options)

        @rule(first=mostly(pick("operation")), second=mostly(pick("operation")), after=ALARMS)
        def start(self, first: Any, second: Any, after: float | None) -> None:
            self._do("start", first, second, after=after)

        # --------------------------------------------------------------------------------------- results

        @rule(
            operation=mostly(pick("operation")),
            way=st.sampled_from(("wait", "test", "done", "all", "any")),
            after=ALARMS,
        )
        def wait(self, operation: Any, way: str, after: float | None) -> None:
            self._do("wait", operation, way=way, after=after)

        @rule(operation=mostly(pick("operation")), after=ALARMS)
        def cancel(self, operation: Any, after: float | None) -> None:
            self._do("cancel", operation, after=after)

        @rule(operation=mostly(pick("operation")), number=st.integers(1, 3), cancelled=st.integers(0, 3))
        def tasks(self, operation: Any, number: int, cancelled: int) -> None:
            self._do("tasks", operation, number=number, cancelled=cancelled)

        @rule(
            endpoint=mostly(pick("endpoint")),
            peer=PEERS,
            remote=mostly(pick("remote")),
            how=st.sampled_from(("read", "write", "prepared", "fetch", "atomic")),
            begin=st.sampled_from((0, 8, 4000, 4096)),
            size=st.sampled_from((0, 8, 96, 4096)),
            after=ALARMS,
        )
        def access(self, endpoint: Any, peer: Any, remote: Any, **options: Any) -> None:
            self._do("access", endpoint, peer, remote, makes="operation", **options)

        # -------------------------------------------------------------------------------- queues, counters

        @rule(endpoint=mostly(pick("endpoint")), region=mostly(pick("region")), peer=PEERS, tag=TAGS)
        def post_receive(self, endpoint: Any, region: Any, peer: Any, tag: Any) -> None:
            self._do("post_receive", endpoint, region, peer, tag=tag)

        @rule(endpoint=mostly(pick("endpoint")), wait=FLAGS, after=ALARMS)
        def read_queue(self, endpoint: Any, wait: bool, after: float | None) -> None:
            self._do("read_queue", endpoint, wait=wait, after=after)

        @rule(part=mostly(pick("part")), write=FLAGS, after=ALARMS)
        def event(self, part: Any, write: bool, after: float | None) -> None:
            self._do("event", part, write=write, after=after)

        @rule(
            part=mostly(pick("part")),
            how=st.sampled_from(("add", "set", "wait", "add_error", "arm")),
            value=mostly(st.integers(0, 4)),
            after=ALARMS,
        )
        def count(self, part: Any, how: str, value: Any, after: float | None) -> None:
            self._do("count", part, how=how, value=value, after=after)

        @rule(
            endpoint=mostly(pick("endpoint")),
            region=mostly(pick("region")),
            part=mostly(pick("part")),
            peer=PEERS,
        )
        def defer(self, endpoint: Any, region: Any, part: Any, peer: Any) -> None:
            self._do("defer", endpoint, region, part, peer)

        # ----------------------------------------------------------------------------------- connections

        @rule(domain=mostly(pick("domain")), after=ALARMS)
        def listen(self, domain: Any, after: float | None) -> None:
            self._do("listen", domain, makes="listener", after=after)

        @rule(endpoint=mostly(pick("endpoint")), listener=mostly(pick("listener")), after=ALARMS)
        def connect(self, endpoint: Any, listener: Any, after: float | None) -> None:
            self._do("connect", endpoint, listener, makes="operation", after=after)

        @rule(listener=mostly(pick("listener")), reject=FLAGS, after=ALARMS)
        def accept(self, listener: Any, reject: bool, after: float | None) -> None:
            self._do("accept", listener, makes="endpoint", reject=reject, after=after)

        @rule(endpoint=mostly(pick("endpoint")))
        def shutdown(self, endpoint: Any) -> None:
            self._do("shutdown", endpoint, makes="operation")

        # -------------------------------------------------------------------------------- ends, and anything

        @rule(what=pick("endpoint", "part", "region", "listener", "domain"), after=ALARMS)
        def close(self, what: Any, after: float | None) -> None:
            self._do("close", what, after=after)

        @rule(what=pick(*KINDS))
        def drop(self, what: Pick) -> None:
            ref = self._resolve(what)
            if isinstance(ref, Ref):
                self._do("drop", ref.name)

        @rule()
        def collect(self) -> None:
            self._do("collect")

        @rule(what=pick(*KINDS))
        def look(self, what: Pick) -> None:
            self._do("look", what)

        @rule(what=pick(*KINDS))
        def pickle(self, what: Pick) -> None:
            self._do("pickle", what)

        @rule(
            what=pick(*KINDS),
            method=st.integers(0, 60),
            arguments=st.lists(NONSENSE, max_size=3),
            after=ALARMS,
        )
        def call(self, what: Pick, **options: Any) -> None:
            self._do("call", what, **options)

        @rule(close=FLAGS)
        def fork(self, close: bool) -> None:
            self._do("fork", close=close)

        @rule(
            what=pick("operation", "endpoint"),
            ways=st.lists(
                st.sampled_from(("wait", "test", "done", "cancel", "look", "close", "send", "receive")),
                min_size=2,
                max_size=3,
            ),
            peer=PEERS,
        )
        def together(self, what: Pick, ways: list[str], peer: Any) -> None:
            """Several threads at one object."""
            self._take(*[BESIDE.get(way, BESIDE["wait"])(self._step, what, peer, way) for way in ways])

    return Machine


BESIDE: dict[str, Callable[[Callable[..., Step], Pick, Any, str], Step]] = {
    "wait": lambda step, what, peer, way: step("wait", what, way=way),
    "cancel": lambda step, what, peer, way: step("cancel", what),
    "look": lambda step, what, peer, way: step("look", what),
    "close": lambda step, what, peer, way: step("close", what),
    "send": lambda step, what, peer, way: step(
        "send", Pick("endpoint", what.place), peer, how="bytes", size=4096, tag=0
    ),
    "receive": lambda step, what, peer, way: step(
        "receive", Pick("endpoint", what.place), peer, how="into", size=4096, tag=0, ignore=0
    ),
}
