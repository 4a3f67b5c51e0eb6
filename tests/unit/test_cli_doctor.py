# SPDX-License-Identifier: BSD-3-Clause
"""What the doctor finds: each check with what helps and with what hinders."""

from __future__ import annotations

import dataclasses
import errno
import json
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

import ofipy
from ofipy.cli import checks
from ofipy.cli.checks import Check, State
from ofipy.host.tree import Tree


def run(*words: str, code: int = 0, **environment: str) -> tuple[str, str]:
    ran = subprocess.run(
        [sys.executable, "-P", "-m", "ofipy", "doctor", *words],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ran.returncode == code, ran.stderr
    return ran.stdout, ran.stderr


def document(code: int = 0, **environment: str) -> dict[str, dict[str, str]]:
    printed = json.loads(run("--json", code=code, **environment)[0])
    assert printed["schema"] == 1
    return {each["name"]: each for each in printed["checks"]}


class TestCommand:
    def test_a_line_each(self) -> None:
        printed = run(OFIPY_PROVIDER="shm")[0]
        found = document(OFIPY_PROVIDER="shm")
        assert set(found["key"]) == {"name", "state", "finding", "remedy"}
        assert found["provider"]["finding"].startswith("open() takes shm")
        assert list(found) == [
            "provider",
            "interfaces",
            "congestion control",
            "attach",
            "shared memory",
            "descriptors",
            "locked memory",
            "key",
            "libibverbs",
            "libfabric",
        ]
        assert all(name in printed for name in found)

    def test_it_fits_a_narrow_terminal(self) -> None:
        assert max(map(len, run(COLUMNS="60")[0].splitlines())) <= 60

    def test_a_failure_is_told_by_the_exit_code(self, tmp_path: Path) -> None:
        assert "to be mended: key" in run(code=1, OFIPY_AUTH_KEY_FILE=str(tmp_path / "none"))[1]

    @pytest.mark.parametrize(
        ("variable", "value", "name"),
        [
            ("OFIPY_LIBFABRIC", "/nowhere/libfabric.so.1", "libfabric"),
            ("OFIPY_TCP_CONGESTION_CONTROL", "carrier-pigeon", "congestion control"),
        ],
    )
    def test_what_was_asked_for_and_is_not_there(self, variable: str, value: str, name: str) -> None:
        found = document(code=1, **{variable: value})[name]
        assert found["state"] == "failed"
        assert value in found["finding"]
        assert found["remedy"]


class TestKey:
    def test_none(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("OFIPY_AUTH_KEY_FILE", raising=False)
        assert checks.check_key().state is State.OK

    @pytest.mark.parametrize(
        ("mode", "length", "state", "says"),
        [
            (0o600, 32, State.OK, "mode 600"),
            (0o640, 32, State.FAILED, "chmod 600"),
            (0o600, 3, State.FAILED, "3 bytes"),
        ],
    )
    def test_a_file(
        self,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        mode: int,
        length: int,
        state: State,
        says: str,
    ) -> None:
        file = tmp_path / "key"
        file.write_bytes(b"k" * length)
        file.chmod(mode)
        monkeypatch.setenv("OFIPY_AUTH_KEY_FILE", str(file))
        check = checks.check_key()
        assert check.state is state
        assert says in f"{check.finding} {check.remedy}"

    def test_who_proves_it(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        file = tmp_path / "key"
        file.write_bytes(b"k" * 32)
        file.chmod(0o600)
        monkeypatch.setenv("OFIPY_AUTH_KEY_FILE", str(file))
        shm = ofipy.getinfo(provider="shm")[0]
        tcp = {info.ep_type: info for info in ofipy.getinfo(provider="tcp")}
        unproven = dataclasses.replace(
            tcp[ofipy.EndpointType.MSG], provider="mixed", peer_proof=ofipy.PeerProof.NONE
        )
        proven = dataclasses.replace(tcp[ofipy.EndpointType.RDM], provider="mixed")
        foreign = dataclasses.replace(unproven, provider="ofi:tcp")
        found = checks.check_key([shm, *tcp.values(), unproven, proven, foreign])
        assert found.state is State.OK
        assert found.finding == (
            f"{file}, mode 600; proven by peers of tcp, mixed rdm; not by those of mixed msg, ofi; "
            "processes of the same user need none over shm"
        )


class TestAttach:
    def test_it_is_tried(self) -> None:
        assert checks.try_attach() in (0, errno.EPERM, errno.ENOSYS)

    def test_refused_by_yama(self, tmp_path: Path) -> None:
        scope = tmp_path / "proc/sys/kernel/yama/ptrace_scope"
        scope.parent.mkdir(parents=True)
        scope.write_text("1\n")
        check = checks.check_attach(lambda: errno.EPERM, Tree(str(tmp_path)))
        assert check.state is State.WARNING
        assert "ptrace_scope is 1" in check.finding
        assert "OFIPY_SHM_PTRACER=yes" in check.remedy

    def test_refused_by_a_filter(self, tmp_path: Path) -> None:
        check = checks.check_attach(lambda: errno.ENOSYS, Tree(str(tmp_path)))
        assert check.state is State.WARNING
        assert check.remedy == "in a container: --cap-add SYS_PTRACE"

    def test_allowed(self, tmp_path: Path) -> None:
        assert checks.check_attach(lambda: 0, Tree(str(tmp_path))).state is State.OK


class TestSharedMemory:
    def check(self, folder: Path, **limits: tuple[str, int]) -> Check:
        """In the group /a/b of these limits and uses."""
        for name, (limit, used) in limits.items():
            group = folder / "sys/fs/cgroup" / name.replace("_", "/")
            group.mkdir(parents=True, exist_ok=True)
            (group / "memory.max").write_text(f"{limit}\n")
            (group / "memory.current").write_text(f"{used}\n")
        membership = folder / "proc/self/cgroup"
        membership.parent.mkdir(parents=True)
        membership.write_text("1:name=systemd:/x\n0::/a/b\n")
        return checks.check_shared_memory(Tree(str(folder)))

    def test_no_limit(self, tmp_path: Path) -> None:
        assert self.check(tmp_path, a_b=("max", 5)).finding.startswith("no limit")

    def test_the_tightest_limit_above(self, tmp_path: Path) -> None:
        check = self.check(tmp_path, a=(str(100 << 20), 36 << 20), a_b=(str(1 << 40), 5))
        assert (check.state, "64 MiB" in check.finding) == (State.WARNING, True)
        assert "--memory" in check.remedy

    def test_enough(self, tmp_path: Path) -> None:
        assert self.check(tmp_path, a_b=(str(8 << 30), 0)).state is State.OK


class TestLimits:
    @pytest.mark.parametrize(
        ("soft", "state"),
        [(256, State.WARNING), (1024, State.OK), (resource.RLIM_INFINITY, State.OK)],
    )
    def test_descriptors(self, soft: int, state: State) -> None:
        check = checks.check_descriptors(soft, 4096)
        assert check.state is state
        assert check.remedy == ("ulimit -n 4096" if state is State.WARNING else "")

    @pytest.mark.parametrize(
        ("soft", "found", "state"),
        [
            (8 << 20, [], State.OK),
            (8 << 20, ["rxe0"], State.WARNING),
            (1 << 30, ["rxe0"], State.OK),
            (resource.RLIM_INFINITY, ["rxe0"], State.OK),
        ],
    )
    def test_locked_memory(self, soft: int, found: list[str], state: State) -> None:
        check = checks.check_locked(soft, found)
        assert check.state is state
        assert bool(check.remedy) == (state is State.WARNING)


class TestNetworks:
    def test_interfaces(self) -> None:
        (tcp,) = [each for each in ofipy.getinfo(explain=True) if each.provider == "tcp"]
        loopback = tuple(info for info in tcp.infos if ofipy.Cap.REMOTE_COMM not in info.caps)
        alone = ofipy.Explanation("tcp", "", "1.0", loopback, None)
        assert checks.check_interfaces(alone).state is State.WARNING
        none = ofipy.Explanation("tcp", "", "1.0", (), "no interface is up")
        assert checks.check_interfaces(none).finding == "no interface is up"
        assert checks.check_interfaces(none).state is State.WARNING

    def test_an_rdma_device_that_cannot_be_used(self) -> None:
        verbs = ofipy.Explanation("verbs", "", "1.0", (), "libibverbs.so.1 is not found")
        assert checks.check_verbs(verbs, []).state is State.OK
        check = checks.check_verbs(verbs, ["mlx5_0"])
        assert (check.state, check.remedy) == (State.WARNING, "libibverbs.so.1 is not found")
