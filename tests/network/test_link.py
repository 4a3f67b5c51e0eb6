# SPDX-License-Identifier: BSD-3-Clause
"""Endpoints over shared memory and the network at once: several processes on two hosts, several users on one."""

from __future__ import annotations

import os
import re
import select
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hosts import Host, Network, Wire
from nodes import Node, RemoteError

from ofipy._discovery import providers

pytestmark = pytest.mark.skipif(
    "link" not in providers.known(), reason="there is no provider over several ways"
)

Start = Callable[..., Node]
PROCESSES = 8
TIMES = 1_000_000 if os.environ.get("OFIPY_STRESS") == "1" else 10_000
README = Path(__file__).parents[2] / "README.md"
PORT = "7471"


@pytest.fixture
def two(network: Network) -> list[Wire]:
    """Two hosts on one network."""
    return [network.wire(network.host()) for _ in range(2)]


def test_what_two_hosts_count_in_one_word_is_exact(two: list[Wire], start: Start) -> None:
    nodes = [start(two[number % 2].host, INTERFACE="eth0") for number in range(PROCESSES)]
    for node in nodes:
        node.open(provider="link")
    keeper, times = nodes[0], TIMES // PROCESSES
    address, remote = keeper.blob(), keeper.count_here()
    calls = [node.begin("count", address=address, remote=remote, times=times) for node in nodes]
    total = times * PROCESSES
    # Each value was there once, for one of them.
    assert sum(call.result() for call in calls) == total * (total - 1) // 2
    assert keeper.counted() == total
    assert [node.way(address=address) for node in nodes[1:]] == ["tcp", "shm"] * 3 + ["tcp"]


# ------------------------------------------------------------------------------------------------ the README's example


def program(name: str) -> str:
    """A program of the README."""
    found = re.search(rf"```python\n(# {name}\n.*?)```", README.read_text(), re.DOTALL)
    assert found is not None
    return found[1]


def settings(**variables: str) -> dict[str, str]:
    kept = {name: text for name, text in os.environ.items() if not name.startswith("OFIPY_")}
    return kept | {"OFIPY_PROVIDER": "link"} | {f"OFIPY_{name}": text for name, text in variables.items()}


@pytest.fixture
def serve() -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Start the server of the README's example on a host; it listens when this returns."""
    started: list[subprocess.Popen[str]] = []

    def make(host: Host, **variables: str) -> subprocess.Popen[str]:
        said = program("server.py").replace(" as ep:\n", ' as ep:\n    print("open", flush=True)\n')
        process = subprocess.Popen(
            host.inside(sys.executable, "-P", "-c", said),
            env=settings(**variables),
            stdout=subprocess.PIPE,
            text=True,
            cwd=tempfile.gettempdir(),
        )
        started.append(process)
        assert process.stdout is not None
        assert select.select([process.stdout], [], [], 60)[0], "the server does not open"
        assert process.stdout.readline() == "open\n"
        return process

    yield make
    for process in started:
        process.kill()
        process.communicate()


def call(host: Host, server: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run the client of the README's example, with this in place of localhost."""
    return subprocess.run(
        host.inside(sys.executable, "-P", "-c", program("client.py").replace("localhost", server)),
        env=settings(**variables),
        capture_output=True,
        text=True,
        timeout=60,
        cwd=tempfile.gettempdir(),
    )


def new_key(folder: Path) -> str:
    file = folder / "key"
    subprocess.run(
        [sys.executable, "-P", "-m", "ofipy", "key", "new", str(file)], check=True, capture_output=True
    )
    return str(file)


@pytest.mark.parametrize("means", ["interface", "key", "neighbour"])
def test_the_readme(
    two: list[Wire], serve: Callable[..., subprocess.Popen[str]], tmp_path: Path, means: str
) -> None:
    there, here = two
    both = {"AUTH_KEY_FILE": new_key(tmp_path)} if means == "key" else {}
    # Between neighbours and within the key's reach it takes no setting of its own.
    server = serve(there.host, **both, **({"INTERFACE": "eth0"} if means == "interface" else {}))
    near = means == "neighbour"
    client = call(there.host if near else here.host, "localhost" if near else there.v4, **both)
    assert client.stdout == "pong\n", client.stderr
    assert server.communicate(timeout=60)[0] == "ping with tag 7\n"


def test_the_readme_without_a_setting_says_which(
    two: list[Wire], serve: Callable[..., subprocess.Popen[str]]
) -> None:
    there, here = two
    serve(there.host)
    client = call(here.host, there.v4)
    assert client.returncode != 0
    for word in (f"{there.v4}:{PORT}", "node=", "OFIPY_INTERFACE", "OFIPY_AUTH_KEY_FILE"):
        assert word in client.stderr.splitlines()[-1]


# ------------------------------------------------------------------------------------------------- users of one host


@pytest.fixture
def user(start: Start) -> Iterator[Callable[..., Node]]:
    """Starts processes of other users than this one, each user with a runtime folder."""
    folders: dict[int, str] = {}

    def make(host: Host, number: int, **variables: object) -> Node:
        if number not in folders:
            folders[number] = tempfile.mkdtemp(prefix="ofipy-user-", dir="/tmp")
            os.chown(folders[number], number, number)
        node = start(host, runtime=folders[number], **variables)
        node.become(user=number)
        return node

    yield make
    for folder in folders.values():
        shutil.rmtree(folder)


OWNER, STRANGER = 65_501, 65_502


@pytest.mark.parametrize("provider", ["link", "tcp"])
def test_another_user_does_not_get_in_by_the_network(
    network: Network, user: Callable[..., Node], provider: str
) -> None:
    host = network.host()
    network.wire(host)
    owner, stranger = user(host, OWNER, INTERFACE="127.0.0.1"), user(host, STRANGER, INTERFACE="127.0.0.1")
    address = owner.open(provider="link")
    other_address = stranger.open(provider=provider)
    for one, there in ((stranger, address), (owner, other_address)):
        with pytest.raises(RemoteError) as caught:
            one.send(address=there.partition("://")[2], tag=1, text="let me in", complete="delivery")
        assert caught.value.kind in ("AccessDenied", "ConnectionRefused")
        assert "key" in str(caught.value)
    assert [node.unexpected() for node in (owner, stranger)] == [0, 0]
    # The same user's processes prove the user's key to each other, where they share no memory.
    second = user(host, OWNER, INTERFACE="127.0.0.1", HOST_ID="elsewhere")
    second.open(provider="link")
    receive = owner.begin("receive", address=None, tag=2)
    second.send(address=address, tag=2, text="it is me")
    assert receive.result()["text"] == "it is me"
    assert second.way(address=owner.blob()) == "tcp"
