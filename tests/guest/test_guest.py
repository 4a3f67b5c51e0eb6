# SPDX-License-Identifier: BSD-3-Clause
"""The guest itself: what goes in, what comes out, and that nothing of it remains."""

from __future__ import annotations

import contextlib
import hashlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from . import machine
from .channel import Channel
from .clock import get_tsc_khz
from .kernel import newest
from .tools import GuestError, obstacle

ROOT = Path(__file__).parents[2]


def begin(*arguments: str, **variables: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "tests.guest", *arguments],
        cwd=ROOT,
        # Python has to look into the checkout for this module.
        env={**os.environ, "PYTHONSAFEPATH": "", **variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )


def guest(*arguments: str, **variables: str) -> tuple[int, bytes, bytes]:
    """Exit status, output and complaints."""
    process = begin(*arguments, **variables)
    output, complaints = process.communicate(timeout=110)
    return process.returncode, output, complaints


def group_is_gone(leader: int) -> bool:
    try:
        os.killpg(leader, 0)
    except ProcessLookupError:
        return True
    return False


@pytest.fixture
def _installed() -> None:
    reason = obstacle()
    if reason is not None:
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(reason)


@pytest.mark.parametrize("pieces", [1, 2, 7, 1000])
def test_notices_among_output(pieces: int) -> None:
    data = b"a\0\0to\0token began\nb\n\0token\0\0token ended 7\n\0"
    channel, output, notices = Channel("token"), b"", []
    size = -(-len(data) // pieces)
    for start in range(0, len(data), size):
        some, found = channel.feed(data[start : start + size])
        output += some
        notices += found
    # What may become a notice is held back, and no more than that.
    assert (output, notices) == (b"a\0\0tob\n\0token\0", ["began", "ended 7"])
    assert channel.feed(b"x") == (b"\0x", [])


def test_output_is_not_held_back() -> None:
    assert Channel("token").feed(b"a line without an end") == (b"a line without an end", [])


def test_newest_kernel() -> None:
    names = ["6.1.0-56-amd64", "6.12.9+deb12-amd64", "6.12.10+deb12-amd64", "6.12.11+deb12-amd64-unsigned"]
    assert newest([*names, "6.13+deb13-cloud-amd64", "amd64", "download-x"]) == "6.12.10+deb12-amd64"
    assert newest(["cloud-amd64"]) is None


@pytest.mark.parametrize(
    ("kind", "failures", "boots"),
    [
        (machine.EndedError, machine.BOOTS - 1, machine.BOOTS),
        (machine.EndedError, machine.BOOTS, machine.BOOTS),
        (GuestError, 1, 1),  # it had all of its time
    ],
)
def test_who_ends_while_booting_is_switched_on_again(
    monkeypatch: pytest.MonkeyPatch, kind: type[GuestError], failures: int, boots: int
) -> None:
    switched_on = []

    class Emulated(contextlib.AbstractContextManager["Emulated"]):
        def __init__(self, *arguments: object) -> None:
            switched_on.append(self)

        def __exit__(self, *error: object) -> None:
            pass

        def boot(self, seconds: float) -> None:
            if len(switched_on) <= failures:
                raise kind("of this boot")

        def finish(self) -> int:
            return 7

    monkeypatch.setattr(machine, "Machine", Emulated)
    hardware = machine.Hardware(Path("image"), 1, 1, ())
    if failures < boots:
        assert machine.run(hardware, "tcg", 3, "token", 90) == 7
    else:
        with pytest.raises(kind):
            machine.run(hardware, "tcg", 3, "token", 90)
    assert len(switched_on) == boots


@pytest.mark.usefixtures("_installed")
def test_what_goes_in_and_comes_out(tmp_path: Path) -> None:
    share, other = tmp_path / "a share", tmp_path / "other"
    share.mkdir()
    other.mkdir()
    script = f"""
        pwd; echo "$VIRTUAL_ENV, $SECRET, $TOLD"; echo complaint >&2; echo another >/dev/stderr
        command -v depmod >/dev/null && ip -o link show lo | grep -o LOWER_UP
        cd '{other}' && touch file && echo kept >'{share}/file' && head -c 3000000 /dev/zero
        kill -TERM $$
    """
    variables = {"VIRTUAL_ENV": "/my venv", "SECRET": "1", "TOLD": "2"}
    status, output, complaints = guest(
        "--share", str(share), "--env", "TOLD", "--", "sh", "-c", script, **variables
    )
    lines = [os.fsencode(ROOT), b"/my venv, , 2", b"LOWER_UP", b""]
    expected = b"\n".join(lines) + bytes(3_000_000)
    assert complaints == b"complaint\nanother\n"
    assert hashlib.sha256(output).digest() == hashlib.sha256(expected).digest(), output[:200]
    assert status == 128 + 15
    assert (share / "file").read_text() == "kept\n"
    assert list(other.iterdir()) == []


@pytest.mark.usefixtures("_installed")
def test_the_clock_is_that_of_this_machine() -> None:
    """Told, not measured: beside busy processes the guest's kernel measures anything."""
    khz = get_tsc_khz()
    if khz is None:
        pytest.skip("no memory is both written and executed here")
    # The kernel measures its clock too, and has a line for each of the two if they differ: that of the TSC is the last.
    status, output, _ = guest(
        "--", "sh", "-c", "dmesg | grep -o 'tsc: Detected [0-9.]* MHz' | tail -n 1; cat /proc/cmdline"
    )
    detected, parameters = output.decode().splitlines()
    assert status == 0
    assert 1000 * float(detected.split()[2]) == pytest.approx(khz, rel=0.001)
    assert "tsc_early_khz=" in parameters


@pytest.mark.usefixtures("_installed")
@pytest.mark.parametrize("way", [signal.SIGKILL, signal.SIGTERM])
def test_the_harness_is_ended(way: signal.Signals) -> None:
    process = begin("--", "sh", "-c", "echo up; exec sleep 1000")
    assert process.stdout is not None
    assert process.stdout.readline() == b"up\n"
    process.send_signal(way)
    process.communicate(timeout=20)
    assert process.returncode == (143 if way == signal.SIGTERM else -way)
    deadline = time.monotonic() + 10
    while not group_is_gone(process.pid):
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.mark.usefixtures("_installed")
def test_the_time_is_over() -> None:
    process = begin("--timeout", "3", "--", "sleep", "1000")
    assert process.communicate(timeout=30) == (b"", b"guest: the 3 s are over\n")
    assert process.returncode == 124
    assert group_is_gone(process.pid)


@pytest.mark.usefixtures("_installed")
def test_a_guest_that_does_not_boot() -> None:
    status, output, complaints = guest("--accelerator", "tcg", "--boot-timeout", "1.5", "--", "true")
    assert status == 125
    assert b"has not booted within 1.5 s; the console's last lines:\n" in complaints
    assert output == b""


def test_without_qemu(tmp_path: Path) -> None:
    status, output, complaints = guest("--", "true", PATH=str(tmp_path))
    assert (status, output) == (125, b"")
    assert b"not installed: " in complaints
    assert b"qemu-system-x86_64" in complaints
    assert b"apt-get install" in complaints
