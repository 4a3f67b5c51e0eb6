# SPDX-License-Identifier: BSD-3-Clause
"""What the doctor finds: each check with what helps and with what hinders."""

from __future__ import annotations

import dataclasses
import errno
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import ofipy
from ofipy.doctor import attach, key, limits, providers
from ofipy.doctor.finding import Finding, State
from ofipy.doctor.rules import RULES, judge
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


def document(code: int = 0, **environment: str) -> dict[str, dict[str, Any]]:
    printed = json.loads(run("--json", code=code, **environment)[0])
    assert printed["schema"] == 1
    return {each["name"]: each for each in printed["checks"]}


class TestCommand:
    def test_a_line_each(self) -> None:
        printed = run(OFIPY_PROVIDER="shm")[0]
        found = document(OFIPY_PROVIDER="shm")
        assert set(found["key"]) == {
            *("id", "name", "step", "state", "place", "finding", "remedy"),
            *("measured", "threshold", "unit", "sources"),
        }
        assert found["provider"]["finding"].startswith("open() takes shm")
        assert list(found)[:12] == [
            "provider",
            "interfaces",
            "congestion control",
            "attach",
            "key",
            "accepted keys",
            "encryption",
            "libibverbs",
            "libfabric",
            "shared memory",
            "descriptors",
            "locked memory",
        ]
        assert all(name in printed for name, each in found.items() if each["state"] != "absent")

    def test_it_fits_a_narrow_terminal(self) -> None:
        assert max(map(len, run(COLUMNS="60")[0].splitlines())) <= 60

    def test_a_failure_is_told_by_the_exit_code(self, tmp_path: Path) -> None:
        assert "to be mended: key" in run(code=1, OFIPY_AUTH_KEY_FILE=str(tmp_path / "none"))[1]

    @pytest.mark.parametrize(
        ("rule", "variable", "value"),
        [
            ("process.provider", "OFIPY_PROVIDER", "telepathy"),
            ("process.congestion_control", "OFIPY_TCP_CONGESTION_CONTROL", "carrier-pigeon"),
            ("process.key", "OFIPY_AUTH_KEY_FILE", "/nowhere/job.key"),
            ("process.accepted_keys", "OFIPY_AUTH_KEY_FILE_ACCEPTED", "/nowhere/old.key"),
            ("process.encryption", "OFIPY_ENCRYPTION", "perhaps"),
            ("process.libfabric", "OFIPY_LIBFABRIC", "/nowhere/libfabric.so.1"),
        ],
    )
    def test_what_was_asked_for_and_is_not_there(self, rule: str, variable: str, value: str) -> None:
        (found,) = [each for each in document(code=1, **{variable: value}).values() if each["id"] == rule]
        assert found["state"] == "failed"
        assert value in found["finding"] or variable in found["finding"]
        assert found["remedy"]


class TestKey:
    def test_none(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("OFIPY_AUTH_KEY_FILE", raising=False)
        assert key.check_key().state is State.OK

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
        check = key.check_key()
        assert check.state is state
        assert says in f"{check.text} {check.remedy}"

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
        found = key.check_key([shm, *tcp.values(), unproven, proven, foreign])
        assert found.state is State.OK
        assert found.text == (
            f"{file}, mode 600; proven by peers of tcp, mixed rdm; not by those of mixed msg, ofi; "
            "processes of the same user need none over shm"
        )


class TestAttach:
    def test_it_is_tried(self) -> None:
        assert attach.try_attach() in (0, errno.EPERM, errno.ENOSYS)

    def test_refused_by_yama(self, tmp_path: Path) -> None:
        scope = tmp_path / "proc/sys/kernel/yama/ptrace_scope"
        scope.parent.mkdir(parents=True)
        scope.write_text("1\n")
        check = attach.check_attach(lambda: errno.EPERM, Tree(str(tmp_path)))
        assert (check.rule.id, check.state) == ("process.attach", State.WARNING)
        assert "ptrace_scope is 1" in check.text
        assert "OFIPY_SHM_PTRACER=yes" in check.remedy

    def test_refused_by_a_filter(self, tmp_path: Path) -> None:
        check = attach.check_attach(lambda: errno.ENOSYS, Tree(str(tmp_path)))
        assert check.state is State.WARNING
        assert check.remedy == "in a container: --cap-add SYS_PTRACE"

    def test_allowed(self, tmp_path: Path) -> None:
        assert attach.check_attach(lambda: 0, Tree(str(tmp_path))).state is State.OK


class TestSharedMemory:
    def check(self, folder: Path, **groups: tuple[str, int]) -> Finding:
        """In the group /a/b of these limits and uses."""
        for name, (limit, used) in groups.items():
            group = folder / "sys/fs/cgroup" / name.replace("_", "/")
            group.mkdir(parents=True, exist_ok=True)
            (group / "memory.max").write_text(f"{limit}\n")
            (group / "memory.current").write_text(f"{used}\n")
        membership = folder / "proc/self/cgroup"
        membership.parent.mkdir(parents=True)
        membership.write_text("1:name=systemd:/x\n0::/a/b\n")
        return limits.check_shared_memory(Tree(str(folder)))

    def test_no_limit(self, tmp_path: Path) -> None:
        assert self.check(tmp_path, a_b=("max", 5)).text.startswith("no limit")

    def test_the_tightest_limit_above(self, tmp_path: Path) -> None:
        check = self.check(tmp_path, a=(str(100 << 20), 36 << 20), a_b=(str(1 << 40), 5))
        assert (check.state, "64 MiB" in check.text) == (State.WARNING, True)
        assert "--memory" in check.remedy

    def test_enough(self, tmp_path: Path) -> None:
        assert self.check(tmp_path, a_b=(str(8 << 30), 0)).state is State.OK


class TestLimits:
    def tree(self, folder: Path, name: str, soft: str) -> Tree:
        """Of a process with this limit."""
        file = folder / "proc/self/limits"
        file.parent.mkdir(parents=True)
        file.write_text(f"{'Limit':25} Soft Limit  Hard Limit  Units\n{name:25} {soft:20} 4096  n\n")
        return Tree(str(folder))

    @pytest.mark.parametrize(
        ("soft", "state"), [("256", State.WARNING), ("1024", State.OK), ("unlimited", State.OK)]
    )
    def test_descriptors(self, tmp_path: Path, soft: str, state: State) -> None:
        check = limits.check_descriptors(self.tree(tmp_path, "Max open files", soft))
        assert check.state is state
        assert check.remedy == ("ulimit -n 4096" if state is State.WARNING else "")

    @pytest.mark.parametrize(
        ("soft", "found", "state"),
        [
            (f"{8 << 20}", [], State.OK),
            (f"{8 << 20}", ["rxe0"], State.WARNING),
            (f"{1 << 30}", ["rxe0"], State.OK),
            ("unlimited", ["rxe0"], State.OK),
        ],
    )
    def test_locked_memory(self, tmp_path: Path, soft: str, found: list[str], state: State) -> None:
        check = limits.check_locked(self.tree(tmp_path, "Max locked memory", soft), found)
        assert check.state is state
        assert bool(check.remedy) == (state is State.WARNING)

    def test_what_the_kernel_does_not_say(self, tmp_path: Path) -> None:
        tree = Tree(str(tmp_path))
        assert limits.check_descriptors(tree).state is State.ABSENT
        assert limits.check_locked(tree, ["rxe0"]).state is State.ABSENT


class TestRules:
    def test_each_has_a_remedy_and_thresholds_in_order(self) -> None:
        for id, rule in RULES.items():
            assert (rule.id, bool(rule.remedy)) == (id, True)
            if rule.warning is not None and rule.failure is not None:
                assert (rule.warning >= rule.failure) if rule.is_least else True

    @pytest.mark.parametrize(
        ("measured", "state", "threshold"),
        [(0.9, State.OK, 0.85), (0.85, State.OK, 0.85), (0.6, State.WARNING, 0.85), (0.4, State.FAILED, 0.5)],
    )
    def test_a_figure_that_must_be_reached(self, measured: float, state: State, threshold: float) -> None:
        found = judge("ladder.raw", measured, "text")
        assert (found.state, found.threshold, bool(found.remedy)) == (state, threshold, state is not State.OK)

    @pytest.mark.parametrize(
        ("measured", "state"), [(1e-5, State.OK), (2e-5, State.WARNING), (2e-4, State.FAILED)]
    )
    def test_a_figure_that_must_not_be_passed(self, measured: float, state: State) -> None:
        assert judge("port.retransmit", measured, "text").state is state


class TestNetworks:
    def test_interfaces(self) -> None:
        (tcp,) = [each for each in ofipy.getinfo(explain=True) if each.provider == "tcp"]
        loopback = tuple(info for info in tcp.infos if ofipy.Cap.REMOTE_COMM not in info.caps)
        alone = ofipy.Explanation("tcp", "", "1.0", loopback, None)
        assert providers.check_interfaces(alone).state is State.WARNING
        none = ofipy.Explanation("tcp", "", "1.0", (), "no interface is up")
        assert providers.check_interfaces(none).text == "no interface is up"
        assert providers.check_interfaces(none).rule.id == "process.interfaces"
        assert providers.check_interfaces(none).state is State.WARNING

    def test_an_rdma_device_that_cannot_be_used(self) -> None:
        verbs = ofipy.Explanation("verbs", "", "1.0", (), "libibverbs.so.1 is not found")
        assert providers.check_verbs(verbs, []).state is State.OK
        check = providers.check_verbs(verbs, ["mlx5_0"])
        assert (check.rule.id, check.state) == ("process.libibverbs", State.WARNING)
        assert check.remedy == "libibverbs.so.1 is not found"
