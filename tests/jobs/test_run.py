# SPDX-License-Identifier: BSD-3-Clause
"""``ofipy run``: what it starts, prints and passes on, and how it ends."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest
from started import PROGRAM, SECONDS, is_running, wait_until

import ofipy
from ofipy.jobs import own
from ofipy.launch.placement import Place, place, share_of_cores

RUN = (sys.executable, "-m", "ofipy", "run")
GRACE = 2


def run(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*RUN, *arguments], env=os.environ | variables, capture_output=True, text=True, timeout=SECONDS
    )


@pytest.fixture
def program(tmp_path: Path) -> Path:
    return tmp_path / "program.py"


def write(program: Path, text: str) -> str:
    program.write_text(textwrap.dedent(text))
    return str(program)


# what it starts


@pytest.mark.parametrize(
    ("number", "hosts", "expected"),
    [
        (3, None, ["localhost"] * 3),
        (None, "a,b:2", ["a", "b", "b"]),
        (4, "a,b", ["a", "a", "b", "b"]),
        (5, "a,b:2,c", ["a", "a", "b", "b", "c"]),
        (1, "a,b", ["a"]),
    ],
)
def test_places(number: int | None, hosts: str | None, expected: list[str]) -> None:
    places = place(number, hosts)
    assert [each.host for each in places] == expected
    assert [each.rank for each in places] == list(range(len(expected)))
    for each in places:
        assert each.local_size == expected.count(each.host)
        assert each.local_rank == each.rank - expected.index(each.host)


@pytest.mark.parametrize(("number", "hosts"), [(3, "a:1,b:1"), (1, "a:2"), (2, "a,a"), (2, "a:x"), (2, ",")])
def test_places_that_do_not_fit(number: int, hosts: str) -> None:
    with pytest.raises(ofipy.InvalidArgument, match="--hosts"):
        place(number, hosts)


def test_cores_are_shared_out() -> None:
    cores = sorted(os.sched_getaffinity(0))
    assert share_of_cores(Place(0, "a", 0, 1)) == cores
    assert share_of_cores(Place(0, "a", 0, len(cores) + 1)) == []
    shares = [share_of_cores(Place(rank, "a", rank, len(cores))) for rank in range(len(cores))]
    assert shares == [[core] for core in cores]


def test_cores_and_threads(program: Path) -> None:
    text = "import os\nprint(len(os.sched_getaffinity(0)), os.environ['OMP_NUM_THREADS'])\n"
    cores = len(os.sched_getaffinity(0))
    ran = run("-n", "1", write(program, text))
    assert ran.stdout == f"[0] {cores} {cores}\n", ran.stderr
    assert run("-n", "1", "--no-pin", str(program), OMP_NUM_THREADS="7").stdout == f"[0] {cores} 7\n"
    assert run("-n", str(cores + 1), str(program)).stdout.count(f"{cores} 1\n") == cores + 1


def test_the_key_is_on_no_command_line_and_in_no_environment(program: Path) -> None:
    text = """
        import os
        from pathlib import Path
        key = os.pread(int(os.environ["OFIPY_JOB_KEY_FD"]), 1024, 0)
        assert len(key) == 32
        process = os.getpid()
        while process != TEST:
            for name in ("cmdline", "environ"):
                said = Path(f"/proc/{process}/{name}").read_bytes()
                assert key not in said and key.hex().encode() not in said
            process = int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])
        try:
            os.pwrite(int(os.environ["OFIPY_JOB_KEY_FD"]), b"mine", 0)
        except PermissionError:
            print("sealed")
    """
    # Above this process there may be some of other users, as of su or sshd, which cannot be read.
    text = text.replace("TEST", str(os.getpid()))
    assert run("-n", "1", write(program, text)).stdout == "[0] sealed\n"


def test_a_wrapper_does_not_lose_the_key(program: Path) -> None:
    text = "import ofipy\njob = ofipy.job()\nprint(job.size, len(job.exchange(b'')))\n"
    command = f"{shlex.quote(sys.executable)} {shlex.quote(write(program, text))}"
    assert run("-n", "2", "sh", "-c", f"true; {command}").stdout.count("2 2\n") == 2


# what it prints


def test_every_line_says_whose_it_is(program: Path) -> None:
    text = """
        import os, sys
        print("one\\ntwo\\nno end", end="")
        print("an error", file=sys.stderr)
        sys.stdout.buffer.write(b"\\xff" * 200_000)
    """
    ran = subprocess.run([*RUN, "-n", "2", write(program, text)], capture_output=True, timeout=SECONDS)
    assert ran.returncode == 0
    for rank in (b"[0] ", b"[1] "):
        assert rank + b"one\n" in ran.stdout
        assert rank + b"two\n" in ran.stdout
        assert rank + b"no end" in ran.stdout
        assert rank + b"an error\n" in ran.stderr
    assert ran.stdout.count(b"\xff") == 400_000


def test_colours_are_for_terminals() -> None:
    assert run("-n", "1", "echo", "here").stdout == "[0] here\n"
    assert run("-n", "1", "echo", "here", FORCE_COLOR="1").stdout == "\x1b[36m[0]\x1b[0m here\n"
    assert run("-n", "1", "echo", "here", FORCE_COLOR="1", NO_COLOR="1").stdout == "[0] here\n"


# how it ends


def gone(ran: subprocess.CompletedProcess[str]) -> bool:
    """Whether no process that printed its number is there any more."""
    numbers = [line.split()[-1] for line in ran.stdout.splitlines() if "process" in line]
    assert numbers
    return not any(is_running(number) for number in numbers)


@pytest.mark.parametrize("stubborn", [False, True])
def test_a_failure_ends_the_others_and_is_shown_last(stubborn: bool, program: Path) -> None:
    text = f"""
        import os, signal, sys, time, ofipy
        if {stubborn}:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
        print("process", os.getpid(), flush=True)
        job = ofipy.job()
        job.barrier()
        if job.rank == 1:
            raise RuntimeError(f"at {{time.time()}}")
        print("Traceback of somebody else", file=sys.stderr, flush=True)
        time.sleep(50)
    """
    ran = run("-n", "3", write(program, text))
    ended = time.time()
    assert ran.returncode == 1
    lines = ran.stderr.splitlines()
    assert lines[-1] == "ofipy run: rank 1 failed with exit status 1"
    assert lines[-2].startswith("[1] RuntimeError: at ")
    assert ended - float(lines[-2].rpartition(" ")[2]) < GRACE + 1.5  # which a busy machine may take
    assert gone(ran)


def test_the_exit_status_is_that_of_the_first_failure() -> None:
    assert run("-n", "2", "sh", "-c", "exit $((OFIPY_JOB_RANK * 7))").returncode == 7
    ran = run("-n", "2", "sh", "-c", "sleep $OFIPY_JOB_RANK; kill -KILL $$")
    assert ran.returncode == 137
    assert ran.stderr == "ofipy run: rank 0 was ended by SIGKILL\n"


def test_nothing_is_left_of_what_a_process_started() -> None:
    ran = run("-n", "2", "sh", "-c", "sleep 50 & echo process $!; exit $OFIPY_JOB_RANK")
    assert ran.returncode == 1
    assert gone(ran)


def start(*arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen([*RUN, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def read_until(process: subprocess.Popen[str], word: str, times: int) -> list[str]:
    assert process.stdout is not None
    lines: list[str] = []
    while sum(word in line for line in lines) < times:
        lines.append(process.stdout.readline())
        assert lines[-1], lines
    return lines


def test_ctrl_c_once_ends_politely(program: Path) -> None:
    text = """
        import time
        try:
            print("ready", flush=True)
            time.sleep(50)
        except KeyboardInterrupt:
            time.sleep(0.3)
            print("saved")
    """
    with start("-n", "2", write(program, text)) as process:
        read_until(process, "ready", 2)
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=SECONDS)
        assert output.count("saved") == 2
        assert process.returncode == 130


def test_ctrl_c_twice_ends_at_once(program: Path) -> None:
    text = """
        import os, signal, time
        signal.signal(signal.SIGINT, lambda *_: print("not yet", flush=True))
        print("process", os.getpid(), flush=True)
        while True:
            time.sleep(1)
    """
    with start("-n", "2", write(program, text)) as process:
        lines = read_until(process, "process", 2)
        process.send_signal(signal.SIGINT)
        read_until(process, "not yet", 2)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=GRACE + 3)
        assert process.returncode == 130
    for line in lines:
        assert not is_running(line.split()[-1])


def test_nobody_reads_what_it_prints() -> None:
    with start("-n", "2", "sh", "-c", "echo process $$; exec yes") as process:
        (line,) = read_until(process, "process", 1)
        assert process.stdout is not None
        process.stdout.close()
        assert process.wait(timeout=SECONDS) == 1
    assert not is_running(line.split()[-1])


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_who_ends_it_ends_all(number: signal.Signals) -> None:
    with start("-n", "2", "sh", "-c", "echo process $$; exec sleep 50") as process:
        lines = read_until(process, "process", 2)
        process.send_signal(number)
        process.communicate(timeout=SECONDS)
        assert process.returncode == (143 if number is signal.SIGTERM else -9)
    wait_until(lambda: not any(is_running(line.split()[-1]) for line in lines))


def test_what_cannot_be_run() -> None:
    for arguments, said in (
        ((), "PROGRAM"),
        (("true",), "-n NUMBER, or --hosts"),
        (("-n", "2", "no-such-program"), "no such program"),
        (("-n", "3", "--hosts", "a:1", "true"), "--hosts a:1"),
        (("--hosts", "localhost,elsewhere", "true"), "name this host as the others know it"),
    ):
        ran = run(*arguments)
        assert ran.returncode == 2
        assert said in ran.stderr.replace("\n", " ")


# over ssh


@pytest.fixture
def ssh(tmp_path: Path) -> str:
    """A stand-in: it runs the command here, as a shell there would, and keeps its own command line."""
    script = tmp_path / "ssh"
    script.write_text(f'#!/bin/sh\necho "$@" >>{tmp_path}/said\nshift\nexec sh -c "$*"\n')
    script.chmod(0o755)
    return str(script)


def test_other_hosts(ssh: str, tmp_path: Path) -> None:
    # Hosts by addresses of this one, so that they are found.
    ran = run("--hosts", "127.0.0.1:2,127.0.0.2", "--ssh", ssh, str(PROGRAM), "3", "ofipy run")
    assert ran.returncode == 0, ran.stderr
    assert [f"[{rank}] rank {rank} of 3" in ran.stdout for rank in range(3)] == [True] * 3
    said = (tmp_path / "said").read_text().splitlines()
    assert sorted(line.split()[0] for line in said) == ["127.0.0.1", "127.0.0.1", "127.0.0.2"]
    assert all(line.endswith("-m ofipy.launch.agent") for line in said)


def test_a_failure_on_another_host(ssh: str) -> None:
    command = "echo process $$; exec sleep 50"
    ran = run(
        "--hosts", "a,b", "--ssh", ssh, "sh", "-c", f"[ $OFIPY_JOB_RANK = 1 ] && sleep 1 && exit 9; {command}"
    )
    assert ran.returncode == 9
    assert ran.stderr == "ofipy run: rank 1 on b failed with exit status 9\n"
    assert gone(ran)


def test_nothing_is_left_on_another_host_when_ssh_dies(ssh: str) -> None:
    with start("--hosts", "a", "--ssh", ssh, "sh", "-c", "echo process $$; exec sleep 50") as process:
        (line,) = read_until(process, "process", 1)
        process.kill()
        process.communicate(timeout=SECONDS)
    wait_until(lambda: not is_running(line.split()[-1]))


def test_settings_go_to_other_hosts_and_not_by_the_command_line(ssh: str, tmp_path: Path) -> None:
    ran = run("--hosts", "a", "--ssh", ssh, "sh", "-c", "echo $OFIPY_SPIN_TIME $PWD", OFIPY_SPIN_TIME="77")
    assert ran.stdout == f"[0] 77 {os.getcwd()}\n"
    assert "77" not in (tmp_path / "said").read_text()


def test_no_such_folder_there(ssh: str, tmp_path: Path) -> None:
    away = tmp_path / "away"
    away.mkdir()
    Path(ssh).write_text(Path(ssh).read_text().replace("shift\n", f"shift\nrmdir {away}\n"))
    ran = subprocess.run(
        [*RUN, "--hosts", "a", "--ssh", ssh, "true"],
        cwd=away,
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    assert ran.returncode == 127
    assert "away: No such file or directory" in ran.stderr


def test_names_of_variables_are_those_that_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    key = os.memfd_create("key")
    os.write(key, b"k" * 32)
    given = own.variables_of(rank=1, size=2, run="x", server="localhost", host="here", key=key)
    for name, text in given.items():
        monkeypatch.setenv(name, text)
    found = own.find()
    assert found is not None
    assert (found.rank, found.size, found.key) == (1, 2, b"k" * 32)
    assert found.variables.keys() == given.keys()
    os.close(key)
