# SPDX-License-Identifier: BSD-3-Clause
"""By which way large messages come over shm: counted, traced, chosen, and forced."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ofipy

TIMEOUT = 30
LARGE = 1 << 20
PROVIDERS = ["shm", "link:shm+tcp"]


@pytest.fixture(params=PROVIDERS)
def provider(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def carry(ep: ofipy.Endpoint, source: Any, count: int) -> None:
    """Messages from an endpoint to itself, each checked."""
    me, target = ep.insert(ep.address), np.zeros(len(source), np.uint8)
    for number in range(count):
        source[:: len(source) - 1] = number % 251 + 1
        receive = ep.trecv_into(target, me, tag=number)
        ep.tsend(source, me, tag=number).wait(timeout=TIMEOUT)
        assert receive.wait(timeout=TIMEOUT).length == len(source)
        assert (target[:: len(target) - 1] == number % 251 + 1).all()


def counted(ep: ofipy.Endpoint) -> tuple[int, int, int]:
    stats = ep.stats()
    return stats.messages_mapped, stats.messages_pipelined, stats.messages_attached


@pytest.fixture
def may_attach(provider: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Attach works on this machine: it is what is left where it is the only way."""
    monkeypatch.setenv("OFIPY_SHM_ATTACH", "always")
    with ofipy.open(provider=provider) as ep:
        carry(ep, np.zeros(LARGE, np.uint8), 1)
        assert counted(ep) == (0, 0, 1), "process_vm_readv(2) is refused: see `ofipy doctor`"
    monkeypatch.delenv("OFIPY_SHM_ATTACH")


@pytest.mark.usefixtures("may_attach")
@pytest.mark.parametrize(("attach", "expected"), [("no", (0, 40, 0)), ("always", (0, 0, 40))])
def test_a_way_can_be_forced(
    provider: str, monkeypatch: pytest.MonkeyPatch, attach: str, expected: tuple[int, int, int]
) -> None:
    monkeypatch.setenv("OFIPY_SHM_ATTACH", attach)
    with ofipy.open(provider=provider) as ep:
        carry(ep, np.zeros(LARGE, np.uint8), 40)
        assert counted(ep) == expected


@pytest.mark.usefixtures("may_attach")
def test_memory_that_is_mapped(provider: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without attach it is taken always: the pipeline would wait for a sender that is not at hand."""
    monkeypatch.setenv("OFIPY_SHM_ATTACH", "no")
    with ofipy.open(provider=provider) as ep:
        carry(ep, ep.empty(LARGE, np.uint8), 40)
        mapped, pipelined, attached = counted(ep)
    assert attached == 0
    assert mapped >= 39  # the first one may come before the memory is mapped
    assert mapped + pipelined == 40


@pytest.mark.usefixtures("may_attach")
def test_every_way_is_tried(provider: str) -> None:
    """Within a hundred messages that follow each other, whichever is the fastest here."""
    with ofipy.open(provider=provider) as ep:
        carry(ep, np.zeros(LARGE, np.uint8), 100)
        mapped, pipelined, attached = counted(ep)
        assert mapped == 0
        assert pipelined + attached == 100
        assert min(pipelined, attached) >= 1


@pytest.mark.usefixtures("may_attach")
def test_messages_that_are_under_way_together(provider: str) -> None:
    """Some of them are trials, and others wait for those; all arrive in their order."""
    window, size = 32, 100_000
    # Of one domain: who makes progress for the one does so for the other, so that the sender is awake.
    with ofipy.open(provider=provider) as a, a.domain.endpoint().enable() as b:
        to_b, from_a = a.insert(b.address), b.insert(a.address)
        outgoing, incoming = (np.zeros((window, size), np.uint8) for _ in range(2))
        for number in range(20):
            outgoing[:] = np.arange(window, dtype=np.uint8)[:, None] + number
            receives = [b.trecv_into(each, from_a, tag=1) for each in incoming]
            sends = [a.tsend(each, to_b, tag=1) for each in outgoing]
            ofipy.wait_all(receives + sends, timeout=TIMEOUT)
            assert np.array_equal(outgoing, incoming)
        mapped, pipelined, attached = counted(b)
        assert mapped == 0
        assert pipelined + attached == 20 * window
        assert min(pipelined, attached) >= 1


def test_small_messages_are_not_counted(provider: str) -> None:
    with ofipy.open(provider=provider) as ep:
        carry(ep, np.zeros(8192, np.uint8), 10)
        assert counted(ep) == (0, 0, 0)


@pytest.mark.parametrize("attach", ["no", "always"])
@pytest.mark.usefixtures("may_attach")
def test_a_trace_names_the_way(
    provider: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, attach: str
) -> None:
    file = tmp_path / "trace.json"
    monkeypatch.setenv("OFIPY_SHM_ATTACH", attach)
    monkeypatch.setenv("OFIPY_HOOKS", f"trace:file={file}")
    with ofipy.open(provider=provider) as ep:
        carry(ep, np.zeros(LARGE, np.uint8), 3)
    events = [each for each in json.loads(file.read_text())["traceEvents"] if each["name"] == "payload"]
    assert [each["args"]["way"] for each in events] == [{"no": "pipeline", "always": "attach"}[attach]] * 3
    assert [each["args"]["bytes"] for each in events] == [LARGE] * 3
    assert {each["args"]["peer"] for each in events} == {0}
