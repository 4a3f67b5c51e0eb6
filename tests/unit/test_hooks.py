# SPDX-License-Identifier: BSD-3-Clause
"""Lists of hooks: what is meant, what is refused, what there is."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import ofipy
from ofipy._base.binding import lib
from ofipy._discovery import hooks as _hooks

TIMEOUT = 20

REFUSED = [
    ("tracer", 'no hook "tracer"; known are '),
    ("fault;;fault", 'no hook ""'),
    ("fault:rate=1", 'no option "rate"; it has fail, errno, delay, lose, nth, operation, peer, seed'),
    ("fault:fail=1.5", "hook fault: fail=1.5; 0 to 1 is meant"),
    ("fault:fail=-1", "hook fault: fail=-1; 0 to 1 is meant"),
    ("fault:fail=", "hook fault: fail=; 0 to 1 is meant"),
    ("fault:delay=3", "hook fault: delay=3; 0 to 60s is meant"),
    ("fault:delay=61s", "0 to 60s is meant"),
    ("fault:nth=many", "nth=many; 0 to "),
    ("debug:loud=yes", 'hook debug has no option "loud"; it has none'),
]

REFUSED_BY_THE_HOOK = [
    ("fault:errno=EFOO", "errno=EFOO"),
    ("fault:errno=-5", "errno=-5"),
    ("fault:operation=sned", "operation=sned"),
    ("fault:delay=1ms,operation=send+recv", "delay with operation=send+recv"),
]


@pytest.mark.parametrize(("hooks", "words"), REFUSED + REFUSED_BY_THE_HOOK)
def test_what_there_is_not_is_refused_by_name(hooks: str, words: str) -> None:
    with pytest.raises(ofipy.InvalidArgument) as caught:
        ofipy.open(provider="shm", hooks=hooks)
    assert words in str(caught.value)


@pytest.mark.parametrize(("hooks", "words"), REFUSED)
def test_of_the_environment_too(hooks: str, words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OFIPY_HOOKS", hooks)
    with pytest.raises(ofipy.ConfigError) as caught:
        ofipy.open(provider="shm")
    assert words in str(caught.value)
    assert "OFIPY_HOOKS" in str(caught.value)


def test_a_list_or_its_text() -> None:
    assert _hooks.checked(["debug", "fault:fail=0.5,seed=3"]) == "debug;fault:fail=0.5,seed=3"
    assert _hooks.checked("debug;fault") == "debug;fault"
    assert _hooks.checked([]) == ""


def exchange(ep: ofipy.Endpoint) -> int:
    """A message to itself; how many operations hooks saw of it."""
    before, received = lib.ofp_hooks_operations(), ep.trecv(tag=1)
    ep.tsend(b"seen", ep.insert(ep.address), tag=1).wait(timeout=TIMEOUT)
    assert bytes(received.wait(timeout=TIMEOUT)) == b"seen"
    return int(lib.ofp_hooks_operations() - before)


def test_an_argument_comes_before_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OFIPY_HOOKS", "fault:fail=1")
    with ofipy.open(provider="shm", hooks=[]) as ep:
        assert exchange(ep) == 0
    with ofipy.open(provider="shm", hooks="debug") as ep:
        assert exchange(ep) == 2
    with ofipy.open(provider="shm") as ep, pytest.raises(ofipy.FabricError, match="hook fault: a tsend"):
        ep.tsend(b"x", ep.insert(ep.address), tag=1).wait(timeout=TIMEOUT)


def test_a_fabric_has_the_hooks_of_its_endpoints() -> None:
    info = ofipy.getinfo(provider="shm")[0]
    with ofipy.Fabric(info, hooks=["debug"]) as fabric, fabric.domain() as domain, domain.endpoint() as ep:
        assert exchange(ep.enable()) == 2


def test_the_configuration_file_names_hooks(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text('hooks = "fault:fail=1,errno=ENOSPC"')
    program = (
        "import ofipy\n"
        "with ofipy.open(provider='shm') as ep:\n"
        "    print(ep.tsend(b'x', ep.insert(ep.address), tag=1).exception().errno)"
    )
    environment = os.environ | {"OFIPY_CONFIG": str(file)}
    environment.pop("OFIPY_HOOKS", None)
    done = subprocess.run(
        [sys.executable, "-P", "-c", program],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stdout == "28\n"


def test_a_failure_of_a_hook_is_an_exception_of_its_errno() -> None:
    hooks = "fault:fail=1,errno=EPEERLOST,operation=tsend"
    with ofipy.open(provider="shm", hooks=hooks) as ep:
        request = ep.tsend(b"x", ep.insert(ep.address), tag=1)
        with pytest.raises(ofipy.PeerLost, match="hook fault: a tsend failed on purpose, as fail=1 asks"):
            request.wait(timeout=TIMEOUT)


def test_info_lists_hooks() -> None:
    command = [sys.executable, "-P", "-m", "ofipy", "info", "--hooks"]
    document = json.loads(subprocess.run([*command, "--json"], stdout=subprocess.PIPE, timeout=60).stdout)
    assert set(document) == {"schema", "hooks"}
    assert document["schema"] == 1
    assert all(set(hook) == {"name", "options"} for hook in document["hooks"])
    fault = next(hook for hook in document["hooks"] if hook["name"] == "fault")
    assert all(set(option) == {"name", "default", "range", "help"} for option in fault["options"])
    assert fault["options"][0] == {
        "name": "fail",
        "default": "0",
        "range": "0 to 1",
        "help": "Share of operations that fail",
    }
    table = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=60).stdout
    assert "debug" in table
    assert "compare_atomic" in table
