# SPDX-License-Identifier: BSD-3-Clause
"""The short way: ``ofipy.open`` brings everything, and closes it."""

import gc
import ipaddress
import os
import re
import secrets
import threading
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from sides import Side, Sides, Target

import ofipy
from ofipy._discovery.address import scheme_of
from ofipy.pingpong.leftovers import count_descriptors

TIMEOUT = 30


# `open` takes a provider's first info; the others are the explicit tier's.
pytestmark = pytest.mark.needs("default")


def helpers() -> int:
    """Helper threads of this process, by their name. One that was joined is there for a moment longer."""
    count = 0
    for task in os.listdir("/proc/self/task"):
        with suppress(OSError):
            count += Path(f"/proc/self/task/{task}/comm").read_text().strip() == "ofipy-helper"
    return count


def no_more_helpers_than(count: int) -> bool:
    # An endpoint that another test dropped may be part of a cycle, and nothing here would make the collector run.
    gc.collect()
    deadline = time.monotonic() + TIMEOUT
    while helpers() > count and time.monotonic() < deadline:
        time.sleep(0.001)
    return helpers() == count


def test_everything_is_there_and_closes(target: Target) -> None:
    assert no_more_helpers_than(0)
    descriptors = count_descriptors()
    with ofipy.open(provider=target.provider) as ep:
        assert ep.provider == target.provider == ep.info.provider
        assert ep.domain.info is ep.info
        assert ep.domain.fabric is ep.fabric
        assert ep.cq.domain is ep.av.domain is ep.domain
        assert helpers() == 1
        assert str(ep.address).startswith(f"{scheme_of(target.provider)}://")
        assert ofipy.Address.from_bytes(bytes(ep.address)) == ep.address
    assert ep.closed
    assert ep.domain.closed
    assert ep.fabric.closed
    assert count_descriptors() == descriptors
    assert no_more_helpers_than(0)


def test_manual_progress_has_no_thread(target: Target) -> None:
    assert no_more_helpers_than(0)
    with ofipy.open(provider=target.provider, progress="manual"):
        assert helpers() == 0


def test_question_and_answer(target: Target) -> None:
    """The example of the documentation, both ends in one process."""
    service = secrets.randbelow(30_000) + 20_000

    def serve() -> None:
        msg = server.trecv(tag=7).wait(timeout=TIMEOUT)
        assert msg.data == np.arange(5).tobytes()
        server.tsend(b"pong", msg.source, tag=8).wait()

    with (
        ofipy.open(service=service, provider=target.provider) as server,
        ofipy.open(provider=target.provider) as ep,
    ):
        thread = threading.Thread(target=serve)
        thread.start()
        peer = ep.insert(f"localhost:{service}")
        ep.tsend(np.arange(5), peer, tag=7).wait()
        out = bytearray(4)
        got = ep.trecv_into(out, peer, tag=8).wait(timeout=TIMEOUT)
        thread.join()
        assert (got.length, out) == (4, b"pong")


def test_service_is_taken_once(target: Target) -> None:
    name = target.free_service()
    with ofipy.open(name, provider=target.provider):
        descriptors = count_descriptors()
        with pytest.raises(ofipy.AddressInUse):
            ofipy.open(name, provider=target.provider)
        assert count_descriptors() == descriptors
    ofipy.open(name, provider=target.provider).close()


def test_configured_provider(target: Target, tmp_path: Path) -> None:
    import subprocess
    import sys

    script = "import ofipy\nwith ofipy.open() as ep: print(ep.provider)"
    environment = os.environ | {"OFIPY_PROVIDER": target.provider}
    done = subprocess.run(
        [sys.executable, "-P", "-c", script],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert done.stdout.strip() == target.provider


def host_of(address: ofipy.Address) -> str:
    return str(address).rpartition("://")[2].rpartition(":")[0].strip("[]")


def hosts_of(provider: str) -> list[str]:
    """Where endpoints of it are, each info's; none where addresses are not those of IP."""
    hosts = []
    for info in ofipy.getinfo(provider=provider, ep_type="rdm"):
        if info.address_format not in (ofipy.AddressFormat.IPV4, ofipy.AddressFormat.IPV6):
            continue
        with ofipy.Fabric(info) as fabric, fabric.domain() as domain, domain.endpoint().enable() as ep:
            hosts.append(host_of(ep.address))
    return hosts


def test_node(target: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    """An endpoint is where it was told to be, or it is refused; nobody is put elsewhere in silence."""
    # By which a target on a host of its own listens, and nowhere else.
    monkeypatch.delenv("OFIPY_INTERFACE", raising=False)
    hosts = hosts_of(target.provider)
    if hosts and not any(ipaddress.ip_address(host).is_loopback for host in hosts):
        # Devices of RDMA have no such address.
        with pytest.raises(ofipy.Unreachable, match="localhost"):
            ofipy.open(provider=target.provider, node="localhost")
    else:
        with ofipy.open(provider=target.provider, node="localhost") as ep:
            assert not hosts or ipaddress.ip_address(host_of(ep.address)).is_loopback
    for host in hosts:
        if ipaddress.ip_address(host).is_link_local:
            continue
        with ofipy.open(provider=target.provider, node=host) as ep:
            assert host_of(ep.address) == host
    # The second is reserved for documentation (RFC 5737): nobody's.
    for node in ("host.invalid", "203.0.113.9"):
        with pytest.raises((ofipy.Unreachable, ofipy.NotSupported), match=re.escape(node)):
            ofipy.open(provider=target.provider, node=node)
        with pytest.raises(ofipy.FabricError):
            ofipy.listen(provider=target.provider, node=node)


def test_wrong_options(target: Target) -> None:
    for options in ({"progress": "never"}, {"threading": "wild"}, {"complete": "soon"}, {"ep_type": "tube"}):
        with pytest.raises(ofipy.InvalidArgument, match=next(iter(options.values()))):
            ofipy.open(provider=target.provider, **options)
    with pytest.raises(TypeError):
        ofipy.open(provider=target.provider, colour="red")


def compute(side: Side, answered: str) -> float:
    """Post a receive and look away until the other side is done: the helper thread must do all."""
    room = np.zeros(1 << 22, np.uint8)
    receive = side.ep.trecv_into(room, side.peer, tag=2)
    side.sync()
    deadline = time.monotonic() + TIMEOUT
    while not Path(answered).exists():
        assert time.monotonic() < deadline
        time.sleep(0.001)
    receive.wait(timeout=TIMEOUT)
    assert room.all()
    return 0.0


def ask(side: Side, answered: str) -> float:
    """Send what only the receiver's side can complete."""
    side.sync()
    begin = time.monotonic()
    side.ep.tsend(np.ones(1 << 22, np.uint8), side.peer, tag=2, complete="delivery").wait(timeout=TIMEOUT)
    took = time.monotonic() - begin
    Path(answered).touch()
    return took


@pytest.mark.needs("processes")
def test_helper_answers_while_the_program_is_busy(sides: Sides, tmp_path: Path) -> None:
    _, elapsed = sides.run(compute, ask, str(tmp_path / "answered"), progress="auto")
    # Whoever sleeps looks again after a second: a wake-up that was lost would show.
    assert elapsed < 0.9
