# SPDX-License-Identifier: BSD-3-Clause
"""A fault at every step of the programs in ``side/programs``: one scenario for each group of programs and provider."""

import ctypes
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count, islice
from typing import Any

from ..build import Build
from ..faults import ACTIONS, KINDS, Choice, list_choices
from ..runner import Runner, locate
from ..scenario import Decision, Outcome, Scenario

__all__ = ["FaultScenario", "list_scenarios"]

KIND_NAMES = {number: name for name, number in KINDS.items()}
PROCESSES = 2
FIRST = 24
"""Faults of a program before the next program has its turn."""
# Memory that the core allocates once for the process, and uses again.
FOR_EVER = frozenset(("create_request_chunk", "store_set", "add_page"))

NOT_COVERED = (
    "Order of threads of Python's programs: the kernel chooses it.",
    "Time of Python's programs is real: time-outs of seconds are not reached.",
    "Two faults in one run.",
    "Memory of an object that a signal interrupts between its opening and its handle: its own block stays.",
    "Launchers.",
)


@dataclass(frozen=True)
class Group:
    """Programs of one group: what may happen in them."""

    wanted: dict[str, frozenset[str]]
    """Actions by kind of step."""
    threads: tuple[int, ...] | None = None
    """Threads at whose steps something happens; None: all. The first is 0."""


_CASE = Group(
    {
        "call": frozenset(("fail", "short", "interrupt")),
        "bytecode": frozenset(("interrupt",)),
        "object": frozenset(("fail",)),
    },
    (0,),
)
GROUPS = dict.fromkeys(("connections", "raw", "receives", "remote", "sends", "waits"), _CASE) | {
    "faults": Group({"system": frozenset(("fail", "short")), "memory": frozenset(("fail",))}),
    "death": Group({"system": frozenset(("die", "late")), "memory": frozenset(("die",))}),
    "members": Group({"system": frozenset(("die", "late")), "memory": frozenset(("die",))}),
    "tasks": Group({"await": frozenset(("cancel", "drop")), "call": frozenset(("fail", "late"))}, (0,)),
    "drop": Group({"await": frozenset(("drop",))}, (0,)),
    "ends": Group({"system": frozenset(("late",))}),
    "meeting": Group({"system": frozenset(("fail", "short", "late"))}),
    "fences": Group({"system": frozenset(("stall",))}),
    "timers": Group({"system": frozenset(("late",))}),
    "dask": Group({"await": frozenset(("cancel", "drop"))}, (0,)),
    "dask-threads": Group({"await": frozenset(("late",))}),
    "fork": Group({"system": frozenset(("fork",)), "memory": frozenset(("fork",))}),
}


@dataclass(frozen=True)
class Plan:
    """One run: which program, and its fault, which is None in the run that counts steps."""

    program: str
    kinds: int
    decision: Decision | None = None
    choice: Choice | None = None
    kind: str = ""


@dataclass
class FaultScenario(Scenario):
    """The programs of a group over a provider."""

    runner: Runner = field(kw_only=True)
    group: Group = field(kw_only=True)
    is_deterministic: bool = False
    _seed: int | None = None
    _counts: dict[str, list[Any]] = field(default_factory=dict)
    _plans: list[Plan] = field(default_factory=list)
    _rest: "Iterator[Plan]" = field(default_factory=lambda: iter(()))

    def prepare(self) -> None:
        self.runner.start()

    def programs(self) -> list[str]:
        """Names of the programs."""
        return [name for name in self.runner.programs if name.startswith(f"{self.name}/")]

    def runs(self, seed: int) -> int | None:
        """Unknown before the steps of each program were counted: the last run says so by :class:`IndexError`."""
        del seed
        return None

    def run(self, seed: int, number: int, trace: Sequence[Decision] | None = None) -> Outcome:
        plan = self._find_plan(seed, number)
        if trace is not None:
            plan = self._follow(plan, trace)
        return self._make_run(seed, plan)

    # plans

    def _find_plan(self, seed: int, number: int) -> Plan:
        if seed != self._seed:
            self._seed, self._plans, self._rest = seed, [], self._draw_plans(seed)
            self._counts = {}
        self._plans += islice(self._rest, max(number + 1 - len(self._plans), 0))
        if number >= len(self._plans):
            raise IndexError(f"{self.name} has {len(self._plans)} runs")
        return self._plans[number]

    def _draw_plans(self, seed: int) -> Iterator[Plan]:
        """For each program the run without a fault, then its faults, in an order that the seed gives."""
        chance = random.Random(f"{seed} {self.name}")
        programs = self.programs()
        chance.shuffle(programs)
        decks: list[Iterator[Plan]] = []
        for program in programs:
            yield Plan(program, self.runner.programs[program])
            deck = self._list_faults(program, seed, chance)
            yield from islice(deck, FIRST)
            decks.append(deck)
        while decks:
            for deck in decks[:]:
                plan = next(deck, None)
                if plan is None:
                    decks.remove(deck)
                else:
                    yield plan

    def _list_faults(self, program: str, seed: int, chance: random.Random) -> Iterator[Plan]:
        decks: dict[tuple[str, str], list[Plan]] = {}
        for number, function, thread, reached in self._count_steps(program, seed):
            kind = KIND_NAMES[number]
            if self.group.threads is not None and thread not in self.group.threads:
                continue
            choices = list(list_choices(kind, function, self.group.wanted.get(kind, frozenset())))
            decks.setdefault((kind, function), []).extend(
                Plan(program, number, Decision(_thread_name(thread), function, at, str(choice)), choice, kind)
                for at in range(1, reached + 1)
                for choice in choices
            )
        for deck in decks.values():
            chance.shuffle(deck)
        # One of each function first: where most steps are, there is not most of the code.
        for place in count():
            batch = [deck[place] for deck in decks.values() if place < len(deck)]
            chance.shuffle(batch)
            yield from batch
            if not batch:
                return

    def _count_steps(self, program: str, seed: int) -> list[Any]:
        if program not in self._counts:
            answer = self.runner.ask(program, seed, self.runner.programs[program], None, count=True)
            self._counts[program] = answer["counts"]
        return self._counts[program]

    def _follow(self, plan: Plan, trace: Sequence[Decision]) -> Plan:
        """The run that makes these decisions; there is one at most, and its function names the program too."""
        if not trace:
            return plan
        decision = trace[0]
        program, _, function = decision.function.rpartition(":")
        for kind in self.group.wanted:
            for choice in list_choices(kind, function, self.group.wanted[kind]):
                if str(choice) == decision.action:
                    place = Decision(decision.thread, function, decision.occurrence, decision.action)
                    return Plan(program or plan.program, KINDS[kind], place, choice, kind)
        return Plan(program or plan.program, plan.kinds, decision, None)

    # runs

    def _make_run(self, seed: int, plan: Plan) -> Outcome:
        fault = None
        if plan.decision is not None and plan.choice is not None:
            fault = {
                "kind": KINDS[plan.kind],
                "function": plan.decision.function,
                "thread": int(plan.decision.thread.removeprefix("T")),
                "occurrence": plan.decision.occurrence,
                "action": ACTIONS.index(plan.choice.action),
                "value": plan.choice.value,
                "more": plan.choice.more,
            }
        answer = self.runner.ask(plan.program, seed, plan.kinds, fault, count=plan.decision is None)
        if plan.decision is None:
            self._counts[plan.program] = answer["counts"]
        is_signal = plan.choice is not None and plan.choice.action == "interrupt"
        verdict = answer["verdict"] or (None if is_signal else _judge_left(answer.get("left", [])))
        trace: tuple[Decision, ...] = ()
        if plan.decision is not None:
            at = plan.decision
            trace = (Decision(at.thread, f"{plan.program}:{at.function}", at.occurrence, at.action),)
        is_stale = plan.decision is not None and not answer["happened"]
        return Outcome(
            verdict=verdict,
            steps=answer["steps"],
            faults=answer["happened"],
            story=tuple(_tell(plan, answer)) if verdict else (),
            trace=trace,
            is_stale=is_stale,
        )

    def close(self) -> None:
        self.runner.close()


def _thread_name(thread: int) -> str:
    return f"T{thread}"


def _judge_left(left: Sequence[Any]) -> str | None:
    """A verdict about memory that is left."""
    places = [(locate(*place), number) for place, number in left if place is not None]
    shown = [f"{number} of {name} ({at})" for (name, at), number in places if name not in FOR_EVER]
    return f"leak: memory is left, {', '.join(shown[:4])}" if shown else None


def _tell(plan: Plan, answer: dict[str, Any]) -> Iterator[str]:
    """Who did what: the last steps, and what the run said itself."""
    yield f"program {plan.program}"
    for step in answer["story"]:
        where = ""
        if step["caller"]:
            function, place = locate(*step["caller"])
            where = f" in {function} ({place})"
        action = f"  <- {plan.choice}" if step["action"] and plan.choice else ""
        yield f"{_thread_name(step['thread'])} {step['function']} {step['occurrence']}{where}{action}"
    yield from answer.get("notes", ())


def has_openssl() -> bool:
    """Whether connections over tcp can be encrypted."""
    try:
        ctypes.CDLL("libssl.so.3")
    except OSError:
        return False
    return True


def list_scenarios(build: Build) -> list[Scenario]:
    """One for each group of programs and target; they share the processes that run them."""
    runners = [Runner(build) for _ in range(PROCESSES)]
    targets = ("shm", "tcp", "link", "rdmfake")
    names = {
        "connections": targets,
        "raw": targets,
        "receives": (*targets, "tcp-msg"),
        "remote": targets,
        "sends": (*targets, "tcp-msg"),
        "waits": targets,
        "faults": (*targets, "tcp-msg", *(("tcp-tls", "tcp-msg-tls") if has_openssl() else ())),
        "tasks": ("shm", "tcp", "link", "rdmfake-gets"),
        "death": ("shm", "tcp", "link"),
        "members": ("shm", "tcp", "link"),
        "ends": ("tcp-msg",),
        "meeting": ("shm", "tcp", "link"),
        "fences": ("shm", "link"),
        "drop": targets,
        "timers": ("shm", "tcp", "link"),
        "fork": ("shm", "tcp", "link"),
        "dask": ("tcp",),
        "dask-threads": ("shm",),
    }
    every = [(group, target) for group, chosen in names.items() for target in chosen]
    return [
        FaultScenario(
            f"{group}/{target}",
            "faults",
            not_covered=NOT_COVERED,
            runner=runners[place % PROCESSES],
            group=GROUPS[group],
        )
        for place, (group, target) in enumerate(every)
    ]
