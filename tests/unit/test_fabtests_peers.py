# SPDX-License-Identifier: BSD-3-Clause
"""The peers move the bytes that they are timed for."""

import importlib.util
import itertools
import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any, Self

import pytest

import ofipy
from fabtests.compare.bench import Bench
from fabtests.compare.case import Case, Cell
from fabtests.compare.cases import CASES
from fabtests.compare.command import what_lacks
from fabtests.compare.contender import Contender
from fabtests.compare.entrants import OPENSSL, RECIPES, Entrant, recipe_of
from fabtests.compare.field import Field
from fabtests.compare.latency import TcpLatency
from fabtests.compare.rma import ShmRma
from fabtests.compare.runner import select_rows
from fabtests.compare.second import parse_environments
from fabtests.compare.windows import TcpBandwidth, TcpRate
from ofipy.pingpong.pipe import pick_cores
from ofipy.pingpong.worker import load

MIB = 1 << 20
SIZE = 100_000  # larger than what any of them buffers or copies without being asked


def both(first: Callable[[], object], second: Callable[[], object]) -> None:
    """Run the two sides, the second in a thread of its own."""
    failures: list[BaseException] = []

    def run() -> None:
        try:
            second()
        except BaseException as error:
            failures.append(error)

    beside = threading.Thread(target=run, daemon=True)
    beside.start()
    first()
    beside.join(20)
    assert not beside.is_alive()
    assert not failures


def make_pair(entrant: Entrant) -> list[Contender]:
    """Both sides in this process, having met."""
    recipe = recipe_of(entrant)
    if recipe.module is not None:
        pytest.importorskip(recipe.module)
    try:
        pair = [load(recipe.contender)(first, **recipe.options) for first in (True, False)]
    except ofipy.ProviderUnavailable as error:
        if entrant != OPENSSL:
            raise
        pytest.skip(str(error))
    offers = [side.offer() for side in pair]
    both(lambda: pair[0].meet(offers[1]), lambda: pair[1].meet(offers[0]))
    return pair


ATTACH = Entrant("attach")
# Loops only play ping-pong, in as many tasks as the mode says, and look at no byte of it.
LOOPS = (Entrant("asyncio"), Entrant("uvloop"))
# MPI has one rank a process.
HERE = [
    entrant
    for entrant, recipe in RECIPES.items()
    if not (recipe.under_mpi or recipe.second or entrant in LOOPS)
]


@pytest.fixture(params=HERE, ids=str)
def sides(request: pytest.FixtureRequest) -> Iterator[list[Contender]]:
    pair = make_pair(request.param)
    for side in pair:
        side.prepare(SIZE, "plain")
    yield pair
    for side in pair:
        side.close()


def test_a_window_brings_what_was_written(sides: list[Contender]) -> None:
    first, second = sides
    for value in (5, 6):
        first.rewrite(value)
        both(lambda: first.stream(3), lambda: second.stream(3))
        assert (second.incoming == value).all()


@pytest.mark.parametrize("sides", [each for each in HERE if each != ATTACH], indirect=True, ids=str)
def test_a_ping_pong_goes_both_ways(sides: list[Contender]) -> None:
    first, second = sides
    first.rewrite(5)
    second.rewrite(6)
    both(lambda: first.exchange(3), lambda: second.exchange(3))
    assert (second.incoming == 5).all()
    assert (first.incoming == 6).all()


@pytest.mark.parametrize("mode", ["target-idle", "target-reads"])
@pytest.mark.parametrize("entrant", [Entrant("ofipy", "fake"), ATTACH], ids=str)
def test_writes_bring_what_was_written(entrant: Entrant, mode: str) -> None:
    need_fake(entrant)
    first, second = make_pair(entrant)
    both(lambda: first.prepare(SIZE, mode), lambda: second.prepare(SIZE, mode))
    for value in (5, 6):
        first.rewrite(value)
        both(lambda: first.stream(3), lambda: second.stream(3))
        both(first.settle, second.settle)
        assert (second.incoming == value).all()
    first.close()
    second.close()


@pytest.mark.parametrize("mode", ["write-native", "write-blocking", "write-prepared"])
def test_a_ping_pong_of_writes(mode: str) -> None:
    entrant = Entrant("ofipy", "fake")
    need_fake(entrant)
    first, second = make_pair(entrant)
    both(lambda: first.prepare(8, mode), lambda: second.prepare(8, mode))
    for count in (3, 4):
        both(lambda count=count: first.exchange(count), lambda count=count: second.exchange(count))
    both(lambda: first.sample(5), lambda: second.sample(5))
    assert bytes(first.incoming) == bytes(second.incoming) == (12).to_bytes(8, "little")
    first.close()
    second.close()


class ThreadField:
    """Both sides of ofipy in this process, where the fake provider lives, behind the calls of a field."""

    def __init__(self, entrant: Entrant) -> None:
        recipe = recipe_of(entrant)
        self._benches = [
            Bench(first, contender=recipe.contender, **recipe.options) for first in (True, False)
        ]
        offers = self.call("offer")
        for bench, other in zip(self._benches, reversed(offers), strict=True):
            bench.meet(other)

    def pair(self, entrant: Entrant) -> Self:
        return self

    def call(self, name: str, *arguments: object) -> list[Any]:
        with ThreadPoolExecutor() as pool:
            return list(pool.map(lambda bench: getattr(bench, name)(*arguments), self._benches, timeout=60))

    def close(self) -> None:
        for bench in self._benches:
            bench.close()


@pytest.mark.parametrize("make", [ShmRma, TcpLatency, TcpRate, TcpBandwidth])
def test_a_round_of_every_row_over_another_provider(make: type[Case]) -> None:
    case = make(provider="fake")
    need_fake(case.own)
    field = ThreadField(case.own)
    for line in itertools.chain.from_iterable(select_rows(case, set(), {8, MIB})):
        for cell in (case.own_cell(line), *case.peer_cells(line).values()):
            if cell.entrant == case.own:
                taken = case.run(field, cell, 3)  # type: ignore[arg-type]
                assert taken.value > 0
                assert taken.samples.size > 0
    field.close()


def need_fake(entrant: Entrant) -> None:
    """Skip where the provider whose two sides live in one process is not installed."""
    if entrant.over == "fake" and "fake" not in {each.provider for each in ofipy.getinfo(explain=True)}:
        pytest.skip("the fake provider is not installed")


def skip_without_mpi(field: Field, entrant: Entrant) -> None:
    """Skip where mpi4py is installed and MPI is not, as in an environment that is laid over another one."""
    if not field.has(entrant) and "cannot load MPI library" in field.absent[str(entrant)]:
        pytest.skip("mpi4py finds no MPI library")


@pytest.mark.parametrize(
    "entrant", [*RECIPES, Entrant("libfabric", "shm"), Entrant("libfabric", "tcp")], ids=str
)
def test_a_round_of_every_peer_can_be_taken(entrant: Entrant) -> None:
    module = recipe_of(entrant).module
    if module is not None and importlib.util.find_spec(module) is None:
        pytest.skip(f"{module} is not installed")
    environments = parse_environments(os.environ.get("FABTESTS_PEER_PYTHON", "").split())
    if (name := recipe_of(entrant).second) and name not in environments:
        pytest.skip(f"{name} is not installed in an environment of its own, which FABTESTS_PEER_PYTHON names")
    with Field(cores=pick_cores(), environments=environments) as field:
        if not field.has(entrant) and entrant.name in ("libfabric", "openssl"):
            pytest.skip(f"{entrant.name} is not installed: {field.absent[str(entrant)]}")
        skip_without_mpi(field, entrant)
        assert field.has(entrant), field.absent
        if entrant in LOOPS:
            for tasks in ("1", "100"):
                assert CASES["await"].run(field, Cell(entrant, tasks, 8), 5).value > 0
            return
        bandwidth = CASES["shm-bandwidth"]
        for way in ("plain", "rewritten"):
            assert bandwidth.run(field, Cell(entrant, way, 65536), 3).value > 0
        if entrant == ATTACH:
            for mode in ("target-idle", "target-reads"):
                assert CASES["shm-rma"].run(field, Cell(entrant, mode, 65536), 3).value > 0
        else:
            latency = CASES["shm-latency"].run(field, Cell(entrant, "plain", 8), 5)
            assert latency.value > 0
            assert latency.samples.size == 20
            taken, done = field.pair(entrant).call("busy_latency", "plain", 8, 5, 20e6)[0]
            assert taken >= 20e6
            assert done > 0


@pytest.mark.parametrize(
    "name", ["shm-rma", "tcp-latency", "tcp-rate", "tcp-bandwidth", "tls-latency", "tls-bandwidth"]
)
def test_a_round_of_every_row_between_processes(name: str) -> None:
    case = CASES[name]
    if reason := what_lacks(case):
        pytest.skip(reason)
    with Field(cores=pick_cores()) as field:
        assert field.has(case.own)
        for line in itertools.chain.from_iterable(select_rows(case, set(), {8, MIB})):
            assert case.run(field, case.own_cell(line), 3).value > 0


def test_mpi_that_does_not_use_tcp_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    if importlib.util.find_spec("mpi4py") is None:
        pytest.skip("mpi4py is not installed")
    peer = Entrant("mpi4py", "tcp")
    monkeypatch.setitem(RECIPES, peer, replace(RECIPES[peer], environment={}))
    with Field(cores=pick_cores()) as field:
        assert not field.has(peer)
        skip_without_mpi(field, peer)
        assert "by TCP" in field.absent["mpi4py over tcp"]


PYZMQ, LIBFABRIC = Entrant("pyzmq", "shm"), Entrant("libfabric", "shm")


def test_an_absent_package_is_an_absent_peer_with_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(RECIPES, PYZMQ, replace(RECIPES[PYZMQ], module="no_such_module"))
    with Field(cores=pick_cores()) as field:
        assert not field.has(PYZMQ)
        assert "pip install '.[bench]' in a checkout of ofipy" in field.absent["pyzmq over shm"]


def test_without_a_libfabric_the_reason_tells_of_library_and_programs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    monkeypatch.setenv("OFIPY_LIBFABRIC", "/nonexistent/libfabric.so.1")
    with Field(cores=pick_cores()) as field:
        assert not field.has(LIBFABRIC)
        assert "OFIPY_LIBFABRIC cannot be loaded" in field.absent["libfabric over shm"]
        assert "fi_rdm_tagged_pingpong" in field.absent["libfabric over shm"]
