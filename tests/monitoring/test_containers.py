# SPDX-License-Identifier: BSD-3-Clause
"""ofipy in containers: what runs in one, what the host sees of it, and manifests for Kubernetes.

The container is bubblewrap's: namespaces of its own for processes, network, IPC, users and host name, and a `/dev`
without devices.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from ofipy.statistics import Process, Reader
from tests.host.servers import here, serving

FOLDER = Path(__file__).resolve().parents[2] / "monitoring/kubernetes"
BUSY = """
import os
import ofipy

with ofipy.open(provider="shm") as a, ofipy.open(provider="shm") as b:
    there = a.insert(b.address)
    for _ in range(7):
        sent = a.tsend(b"contained", there, tag=1)
        b.trecv(tag=1).wait(timeout=60)
        sent.wait(timeout=60)
    print(os.getpid(), flush=True)
    input()
"""


@pytest.fixture(scope="session")
def container() -> list[str]:
    """A command that runs another one in a container."""
    program = shutil.which("bwrap")
    if program is None:
        pytest.skip("bwrap is not installed (Debian's package bubblewrap)")
    words = [program, "--unshare-all", "--die-with-parent", "--hostname", "inside"]
    words += ["--bind", "/", "/", "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/run"]
    ran = subprocess.run([*words, "true"], capture_output=True, text=True, timeout=60, check=False)
    assert ran.returncode == 0, ran.stderr
    return words


def ofipy_in(container: list[str], *words: str, code: int = 0) -> str:
    ran = subprocess.run(
        [*container, sys.executable, "-P", "-m", "ofipy", *words],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert ran.returncode == code, ran.stdout + ran.stderr
    return ran.stdout


def test_doctor_in_a_container(container: list[str]) -> None:
    document = json.loads(ofipy_in(container, "doctor", "--json"))
    assert document["host"] == "inside"
    checks = {each["id"]: each for each in document["checks"]}
    for rule in ("host.shared_memory", "host.memlock", "host.descriptors", "process.attach"):
        assert checks[rule]["finding"], rule
    # The network namespace has loopback alone: the doctor says that no other host is reached.
    assert checks["process.interfaces"]["state"] == "warning"


@pytest.mark.parametrize("provider", ["shm", "tcp"])
def test_messages_in_a_container(container: list[str], provider: str) -> None:
    words = ["pingpong", "-p", provider, "-S", "8,64k", "-I", "20", "--json"]
    assert provider in ofipy_in(container, *words)


@contextmanager
def busy(container: list[str]) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """A process in a container that has sent. Yields it with its pid inside."""
    with subprocess.Popen(
        [*container, sys.executable, "-P", "-c", BUSY],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        try:
            yield process, int(process.stdout.readline())
        finally:
            process.kill()


def below(pid: int) -> set[int]:
    """A process and its children, as this pid namespace numbers them."""
    found = {pid}
    for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        found |= below(int(child))
    return found


def sends(process: Process) -> int:
    return sum(endpoint.counters["sends"] for endpoint in process.endpoints)


def test_the_host_reads_processes_of_containers(container: list[str]) -> None:
    """Each by its pid outside. Inside, both have the same pid, and each sees itself alone."""
    with busy(container) as (one, pid), busy(container) as (other, again):
        assert pid == again
        mine = below(one.pid), below(other.pid)
        found = [each for each in Reader().scan().processes if any(each.pid in pids for pids in mine)]
        assert len(found) == 2
        assert [sends(each) for each in found] == [7, 7]
        assert all(any(each.pid in pids for each in found) for pids in mine)
        inside = json.loads(ofipy_in(container, "top", "-n", "1", "-i", "0.1", "--json"))
        assert len(inside["processes"]) <= 1  # top itself has no endpoint


def test_containers_of_one_network_namespace_share_memory(container: list[str]) -> None:
    """As the containers of a pod do: another pid namespace, so messages are copied without attach."""
    pod = [*container, "--share-net"]
    with serving("ping", "--serve", here(), prefix=pod) as server:
        words = ["ping", server.place, "-c", "20", "-i", "0", "-s", "200000", "--json"]
        printed = ofipy_in(pod, *words)
    (lane,) = json.loads(printed)["lanes"]
    assert (lane["provider"], lane["answered"], lane["wrong"]) == ("shm", 20, 0)


def manifests() -> list[Any]:
    yaml = pytest.importorskip("yaml", reason="could not import 'yaml'")
    return [
        pytest.param(document, id=f"{file.stem}-{document['kind']}")
        for file in sorted(FOLDER.glob("*.yml"))
        for document in yaml.safe_load_all(file.read_text())
    ]


def test_manifests_are_valid() -> None:
    validate = pytest.importorskip("kubernetes_validate", reason="could not import 'kubernetes_validate'")
    versions = validate.latest_version()
    documents = [each.values[0] for each in manifests()]
    assert {each["kind"] for each in documents} == {"DaemonSet", "Service", "Job"}
    for document in documents:
        assert validate.validate(document, versions, strict=True)
        wrong = json.loads(json.dumps(document))
        wrong["spec"]["colour"] = "red"
        with pytest.raises(validate.ValidationError):
            validate.validate(wrong, versions, strict=True)


def test_commands_of_manifests_exist(container: list[str]) -> None:
    text = "".join(file.read_text() for file in FOLDER.glob("*.yml"))
    used = set(
        re.findall(r"ofipy (doctor|ping|exporter|key)\b", text.replace("[ofipy, exporter", "ofipy exporter"))
    )
    assert used == {"doctor", "ping", "exporter", "key"}
    for name in used:
        assert ofipy_in(container, name, "--help")
