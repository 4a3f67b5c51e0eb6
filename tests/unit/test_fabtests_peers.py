# SPDX-License-Identifier: BSD-3-Clause
"""The peers move the bytes that they are timed for."""

import importlib.util
import threading
from collections.abc import Callable, Iterator

import pytest

import ofipy
from fabtests.base.pair import pick_cores
from fabtests.base.worker import load
from fabtests.compare.cases import CASES, Cell
from fabtests.compare.contender import Contender
from fabtests.compare.field import CONTENDERS, MODULES, Field

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


@pytest.fixture(params=["multiprocessing", "pyzmq", "attach"])
def sides(request: pytest.FixtureRequest) -> Iterator[list[Contender]]:
    if request.param in MODULES:
        pytest.importorskip(MODULES[request.param])
    make = load(CONTENDERS[request.param])
    pair = [make(True), make(False)]
    offers = [side.offer() for side in pair]
    both(lambda: pair[0].meet(offers[1]), lambda: pair[1].meet(offers[0]))
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


@pytest.mark.parametrize("sides", ["multiprocessing", "pyzmq"], indirect=True)
def test_a_ping_pong_goes_both_ways(sides: list[Contender]) -> None:
    first, second = sides
    first.rewrite(5)
    second.rewrite(6)
    both(lambda: first.exchange(3), lambda: second.exchange(3))
    assert (second.incoming == 5).all()
    assert (first.incoming == 6).all()


@pytest.mark.parametrize("mode", ["target-idle", "target-reads"])
@pytest.mark.parametrize("name", ["ofipy", "attach"])
def test_writes_bring_what_was_written(name: str, mode: str) -> None:
    options = rma_options() if name == "ofipy" else {}
    first, second = (load(CONTENDERS[name])(side, **options) for side in (True, False))
    offers = first.offer(), second.offer()
    both(lambda: first.meet(offers[1]), lambda: second.meet(offers[0]))
    both(lambda: first.prepare(SIZE, mode), lambda: second.prepare(SIZE, mode))
    for value in (5, 6):
        first.rewrite(value)
        both(lambda: first.stream(3), lambda: second.stream(3))
        assert (second.incoming == value).all()
    first.close()
    second.close()


def test_a_ping_pong_of_writes() -> None:
    first, second = (load(CONTENDERS["ofipy"])(side, **rma_options()) for side in (True, False))
    offers = first.offer(), second.offer()
    both(lambda: first.meet(offers[1]), lambda: second.meet(offers[0]))
    both(lambda: first.prepare(8, "write-blocking"), lambda: second.prepare(8, "write-blocking"))
    for count in (3, 4):
        both(lambda count=count: first.exchange(count), lambda count=count: second.exchange(count))
    assert bytes(first.incoming) == bytes(second.incoming) == (8).to_bytes(8, "little")
    first.close()
    second.close()


def rma_options() -> dict[str, str]:
    """A provider with RMA for both sides in this process."""
    infos = ofipy.getinfo(caps="rma")
    if not infos:
        pytest.skip("no provider here has RMA")
    return {"provider": infos[0].provider}


@pytest.mark.parametrize("name", sorted(set(CONTENDERS) - {"ofipy"}))
def test_a_round_of_every_peer_can_be_taken(name: str) -> None:
    if name in MODULES and importlib.util.find_spec(MODULES[name]) is None:
        pytest.skip(f"{name} is not installed")
    with Field(provider="shm", cores=pick_cores()) as field:
        assert field.has(name), field.absent
        bandwidth = CASES["shm-bandwidth"]
        for way in ("plain", "rewritten"):
            assert bandwidth.run(field, Cell(name, way, 65536), 3).value > 0
        if name == "attach":
            for mode in ("target-idle", "target-reads"):
                assert CASES["shm-rma"].run(field, Cell(name, mode, 65536), 3).value > 0
        else:
            latency = CASES["shm-latency"].run(field, Cell(name, "plain", 8), 5)
            assert latency.value > 0
            assert latency.samples.size == 20
            taken, done = field.pair(name).call("busy_latency", "plain", 8, 5, 20e6)[0]
            assert taken >= 20e6
            assert done > 0


def test_an_absent_package_is_an_absent_peer_with_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(MODULES, "pyzmq", "no_such_module")
    monkeypatch.setenv("PATH", "/nonexistent")
    with Field(provider="shm", cores=pick_cores()) as field:
        assert not field.has("pyzmq")
        assert not field.has("libfabric")
        assert "pip install ofipy[bench]" in field.absent["pyzmq"]
        assert "PATH" in field.absent["libfabric"]
