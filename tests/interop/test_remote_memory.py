# SPDX-License-Identifier: BSD-3-Clause
"""Memory of a program in C on libfabric, reached from here, and ours from there, as the guide says it."""

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import open_on_loopback
from test_pingpong import needs_program, provider_of_program

import ofipy

TIMEOUT = 20
SOURCE = Path(__file__).with_name("remote_memory.c")

pytestmark = [
    needs_program,
    pytest.mark.skipif(
        not Path("/usr/include/rdma/fabric.h").exists() or shutil.which("cc") is None,
        reason="libfabric's headers are not installed (libfabric-dev)",
    ),
]


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The command of the program in C, with its provider."""
    built = tmp_path_factory.mktemp("c") / "remote_memory"
    subprocess.run(
        ["cc", "-std=gnu11", "-Wall", "-Wextra", "-Werror", SOURCE, "-o", built, "-lfabric"], check=True
    )
    return [str(built), provider_of_program()]


@pytest.fixture
def guide() -> dict[str, Any]:
    """The functions of the guide."""
    page = Path(__file__).resolve().parents[2] / "docs/how-to/talk-to-libfabric-programs.md"
    section = page.read_text().partition("## Remote memory\n")[2].partition("\n## ")[0]
    found: dict[str, Any] = {}
    for block in re.findall(r"```python\n(.*?)```", section, re.DOTALL):
        exec(block, found)
    return found


@pytest.fixture
def ep() -> Iterator[ofipy.Endpoint]:
    endpoint = open_on_loopback("tcp")
    yield endpoint
    endpoint.fabric.close()


def test_their_memory(program: list[str], ep: ofipy.Endpoint, guide: dict[str, Any]) -> None:
    with subprocess.Popen(
        [*program, "own"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as owner:
        assert owner.stdout is not None
        told = owner.stdout.readline()
        assert guide["read_theirs"](ep, told).rstrip(b"\0") == b"from the program in C"
        name, key, address, length = told.split()
        peer = ep.insert(bytes.fromhex(name))
        remote = ofipy.RemoteRegion(
            key=int(key),
            offset=int(address),
            length=int(length),
            access=ofipy.Access.REMOTE_WRITE,
        )
        ep.write(b"ofipy", peer, remote[9:14], complete="delivery").wait(timeout=TIMEOUT)
        ep.write(b"!\0", peer, remote[14:16], complete="delivery").wait(timeout=TIMEOUT)
        assert owner.communicate("", timeout=TIMEOUT)[0] == "from the ofipy!\n"
        assert owner.returncode == 0


def test_our_memory(program: list[str], ep: ofipy.Endpoint, guide: dict[str, Any]) -> None:
    memory = bytearray(b"from the program in Python".ljust(100, b"\0"))
    region = ep.register(memory, access="remote_read|remote_write")
    for part in (region, region[9:73]):
        text = bytes(memory[part.offset :]).rstrip(b"\0").decode()
        told = guide["tell"](ep, part[0:64]).split()
        ran = subprocess.run([*program, "use", *told, "C"], capture_output=True, text=True, timeout=TIMEOUT)
        assert (ran.returncode, ran.stdout, ran.stderr) == (0, f"{text}\n", "")
        assert memory[part.offset :].startswith(b"C\0")
        memory[9:] = b"program in Python".ljust(91, b"\0")
