# SPDX-License-Identifier: BSD-3-Clause
"""The interpreter's end: what was posted leaves, whoever else is alive, and what did not leave is told."""

import re
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

import ofipy

TIMEOUT = 60
SIZE = 1 << 20

SEND = """
import os, sys, threading, time, warnings
import ofipy

def send(address=sys.argv[1], provider=sys.argv[2]):
    global ep
    ep = ofipy.open(provider=provider)
    ep.tsend(b"x" * (1 << 20), ep.insert(bytes.fromhex(address)), tag=1)
"""
PLAIN = "send()"
AFTER_AN_EXCEPTION = """
send()
raise SystemExit(3)
"""
WITH_A_DAEMON_THREAD = """
send()
threading.Thread(target=time.sleep, args=(600,), daemon=True).start()
"""
WITH_A_DAEMON_THREAD_THAT_USES_IT = """
send()
def receive():
    while True:
        try:
            ep.trecv_into(bytearray(8), tag=9).wait(timeout=0.01)
        except ofipy.TimedOut:
            pass
        except ofipy.FabricError:
            return
threading.Thread(target=receive, daemon=True).start()
"""
IN_A_CHILD = """
import multiprocessing
if __name__ == "__main__":
    child = multiprocessing.get_context(sys.argv[3]).Process(target=send, args=sys.argv[1:3])
    child.start()
    child.join()
    sys.exit(child.exitcode)
"""
IN_A_CHILD_WHOSE_PARENT_HAS_ONE = """
import multiprocessing
if __name__ == "__main__":
    mine = ofipy.open(provider=sys.argv[2])
    child = multiprocessing.get_context("fork").Process(target=send, args=sys.argv[1:3])
    child.start()
    child.join()
    sys.exit(child.exitcode)
"""
IN_A_CHILD_WITH_A_THREAD = """
import multiprocessing
def later():
    threading.main_thread().join()  # until the child waits for its threads
    ep.tsend(b"y", ep.insert(bytes.fromhex(sys.argv[1])), tag=2).wait(timeout=20)
def work(*arguments):
    send(*arguments)
    threading.Thread(target=later).start()
child = multiprocessing.get_context("fork").Process(target=work, args=sys.argv[1:3])
child.start()
child.join()
sys.exit(child.exitcode)
"""


def run(tmp_path: Path, program: str, *arguments: str, code: int = 0) -> str:
    """Run a program; what it wrote."""
    script = tmp_path / "program.py"
    script.write_text(SEND + textwrap.dedent(program))
    command = [sys.executable, "-P", "-W", "always", str(script), *arguments]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT, check=False)
    assert ended.returncode == code, ended.stderr
    return ended.stdout + ended.stderr


@pytest.fixture(params=["shm", "tcp", "link"])
def receiver(request: pytest.FixtureRequest) -> Iterator[ofipy.Endpoint]:
    with ofipy.open(provider=request.param) as ep:
        yield ep


def arrives(tmp_path: Path, receiver: ofipy.Endpoint, program: str, *arguments: str, code: int = 0) -> str:
    room = bytearray(SIZE)
    receive = receiver.trecv_into(room, tag=1)
    said = run(tmp_path, program, bytes(receiver.address).hex(), receiver.provider, *arguments, code=code)
    assert receive.wait(timeout=TIMEOUT).length == SIZE
    assert room == b"x" * SIZE
    return said


@pytest.mark.parametrize(
    ("program", "code"),
    [
        (PLAIN, 0),
        (AFTER_AN_EXCEPTION, 3),
        (WITH_A_DAEMON_THREAD, 0),
        (WITH_A_DAEMON_THREAD_THAT_USES_IT, 0),
        (IN_A_CHILD_WHOSE_PARENT_HAS_ONE, 0),
    ],
)
def test_what_was_posted_arrives(tmp_path: Path, receiver: ofipy.Endpoint, program: str, code: int) -> None:
    assert "had not left" not in arrives(tmp_path, receiver, program, code=code)


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_of_a_child_of_multiprocessing(tmp_path: Path, receiver: ofipy.Endpoint, method: str) -> None:
    assert "had not left" not in arrives(tmp_path, receiver, IN_A_CHILD, method)


def test_a_thread_of_a_child_goes_on_before(tmp_path: Path, receiver: ofipy.Endpoint) -> None:
    second = receiver.trecv_into(bytearray(1), tag=2)
    arrives(tmp_path, receiver, IN_A_CHILD_WITH_A_THREAD)
    assert second.wait(timeout=TIMEOUT).length == 1


NOBODY_RECEIVES = """
os.environ["OFIPY_LINGER"] = sys.argv[3]
import logging
logging.basicConfig()
peer = ofipy.open(provider=sys.argv[2])
send(bytes(peer.address).hex())
ofipy.open(provider=sys.argv[2])
"""


@pytest.mark.parametrize("more", ["", WITH_A_DAEMON_THREAD.replace("send()", "")])
@pytest.mark.parametrize("provider", ["shm", "link"])
def test_what_did_not_leave_is_told(tmp_path: Path, provider: str, more: str) -> None:
    said = run(tmp_path, NOBODY_RECEIVES + more, "", provider, "1")
    assert "WARNING:ofipy:1 operation (tsend)" in said
    assert "ResourceWarning: 1 operation (tsend)" in said
    said = run(tmp_path, NOBODY_RECEIVES + more, "", provider, "0")
    assert "had not left" not in said


EXIT_ORDER = """
import logging
logging.basicConfig()
from ofipy._base.lifetime import call_before_exit_close
call_before_exit_close(lambda: print("first", ep.stats().pending, ep.closed))
call_before_exit_close(lambda: 1 / 0)
call_before_exit_close(lambda: print("last"))
send()
"""


def test_functions_are_called_between_linger_and_close(tmp_path: Path, receiver: ofipy.Endpoint) -> None:
    said = arrives(tmp_path, receiver, EXIT_ORDER)
    assert [line for line in said.splitlines() if line.startswith(("first", "last"))] == [
        "last",
        "first 0 False",
    ]
    assert "ZeroDivisionError" in said


FINALISER = """
import gc
other = ofipy.open(provider=sys.argv[2], progress="manual")  # it never answers
send(bytes(other.address).hex())
del ep
gc.collect()
"""


def test_a_finaliser_names_the_number(tmp_path: Path) -> None:
    said = run(tmp_path, FINALISER, "", "shm")
    assert re.search("ResourceWarning: unclosed endpoint .*: 1 operation had not left", said)
