# SPDX-License-Identifier: BSD-3-Clause
"""Finding providers: broken packages, wrong names, hints."""

import logging
import subprocess
import sys
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

import ofipy
from ofipy._discovery import providers


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A folder of packages, each an entry point of its own name."""
    monkeypatch.syspath_prepend(tmp_path)
    found = dict(providers.known())

    def known() -> dict[str, EntryPoint]:
        names = sorted({*found, *(path.stem for path in tmp_path.glob("*.py"))})
        return {
            name: found.get(name) or EntryPoint(name, f"{name}:provider", providers.GROUP) for name in names
        }

    monkeypatch.setattr(providers, "known", known)
    monkeypatch.setattr(providers, "_loaded", dict(providers._loaded))
    return tmp_path


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("raise RuntimeError('my bug')", "my bug"),
        ("import does_not_exist", "does_not_exist"),
        ("", "broken"),
        ("provider = 5", "broken"),
        ("from ofipy import Provider\nprovider = Provider('b', 'not_there')", "not_there is not built"),
        ("from ofipy import Provider\nprovider = Provider('b', 'json')", "file too short|invalid ELF"),
    ],
)
def test_broken_package_is_a_reason_only(
    installed: Path, caplog: pytest.LogCaptureFixture, text: str, said: str
) -> None:
    name = f"broken_{abs(hash(text))}"
    (installed / f"{name}.py").write_text(text)
    with caplog.at_level(logging.WARNING, logger="ofipy"):
        reports = {report.provider: report for report in ofipy.getinfo(explain=True)}
    assert reports[name].infos == ()
    assert name in caplog.text
    with pytest.raises(ofipy.ProviderUnavailable, match=said):
        providers.load(name)
    with pytest.raises(ofipy.ProviderUnavailable, match=name):
        ofipy.open(provider=name)
    assert set(reports) >= set(providers.known())


def test_unknown_name_is_told_with_the_known_ones() -> None:
    for ask in (ofipy.getinfo, ofipy.open):
        with pytest.raises(ofipy.ProviderUnavailable, match="no provider 'telepathy'"):
            ask(provider="telepathy")


def test_near_match(installed: Path) -> None:
    (installed / "verbatim.py").write_text("")
    with pytest.raises(ofipy.ProviderUnavailable, match="did you mean verbatim"):
        providers.load("verbatm")


def test_order(installed: Path) -> None:
    for name in ("zebra", "tcp", "aardvark", "link", "shm", "verbs"):
        (installed / f"{name}.py").write_text("")
    names = providers.ordered_names()
    assert names[:4] == ["link", "verbs", "shm", "tcp"]
    assert names[4:] == sorted(names[4:])


def refusal(**wanted: str) -> str:
    with pytest.raises(ofipy.ProviderUnavailable) as caught:
        ofipy.open(**wanted)  # type: ignore[arg-type]
    return str(caught.value)


def test_a_refusal_names_those_that_were_asked() -> None:
    said = refusal(provider="tcp", caps="hmem")
    assert "tcp: lacks hmem" in said
    assert not [name for name in ("shm", "link", "verbs", "left out") if name in said]


def test_a_refusal_says_what_the_nearest_infos_lack() -> None:
    # tcp has infos of type msg, too: that they are not of type rdm is not what is missing.
    said = refusal(provider="shm,tcp", caps="hmem|multicast")
    assert "shm: lacks hmem, multicast" in said or "shm: lacks multicast, hmem" in said
    assert "no rdm endpoints" not in said
    assert "shm: no msg endpoints" in refusal(provider="shm", caps="hmem", ep_type="msg")


def test_hints_leave_out_with_a_reason() -> None:
    for report in ofipy.getinfo(explain=True, caps="hmem|multicast", ep_type="dgram"):
        assert report.infos == ()
        assert report.reason
    assert ofipy.getinfo(caps="hmem|multicast", ep_type="dgram") == []
    with pytest.raises(ofipy.ProviderUnavailable, match="no provider fits"):
        ofipy.open(caps="hmem|multicast", ep_type="dgram")
    for report in ofipy.getinfo(explain=True):
        assert bool(report.infos) != bool(report.reason)
        for info in report.infos:
            assert info.provider.partition(":")[0] == report.provider
            assert info.emulated_caps & ~info.caps == ofipy.Cap(0)
    with pytest.raises(ofipy.InvalidArgument, match="tagged"):
        ofipy.getinfo(caps="tagd")


def test_own_providers_are_not_looked_for() -> None:
    """Reading the entry points of all packages takes as long as opening ten endpoints."""
    script = (
        # What an environment imports at its start is not ofipy's.
        "import sys; before = set(sys.modules); import ofipy; "
        "ofipy.open(provider='shm').close(); ofipy.open().close(); "
        "new = set(sys.modules) - before; "
        "print(sorted({'importlib.metadata', 'importlib.util', 'tomllib', 'logging'} & new))"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", script], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout == "[]\n"


@pytest.mark.parametrize("provider", ["shm", "tcp", "link"])
def test_a_program_that_sends_bytes_does_not_import_numpy(provider: str) -> None:
    """Its import takes twice as long as ofipy's; afterwards arrays pass as they do where it was imported first."""
    script = f"""
import sys
import ofipy

with ofipy.open(provider={provider!r}) as ep:
    peer = ep.insert(ep.address)
    for size in (5, 100_000):
        sending = ep.tsend(bytes(size), peer, tag=size)
        assert len(ep.trecv(tag=size).wait(timeout=30).data) == size
        sending.wait(timeout=30)
    memory = bytearray(5)
    sending = ep.send(bytearray(b"bytes"), peer)
    ep.recv_into(memory).wait(timeout=30)
    sending.wait(timeout=30)
    assert memory == b"bytes"
    assert ep.info.caps & (ofipy.Cap.MSG | ofipy.Cap.TAGGED)
    assert "numpy" not in sys.modules
    import numpy
    array, received = numpy.arange(5000.0), numpy.empty(5000)
    sending = ep.tsend(array, peer, tag=1)
    ep.trecv_into(received, tag=1).wait(timeout=30)
    sending.wait(timeout=30)
    assert (received == array).all()
"""
    subprocess.run([sys.executable, "-P", "-c", script], check=True, timeout=120)


def test_memory_of_the_domain_imports_numpy() -> None:
    script = (
        "import sys, ofipy; ep = ofipy.open(provider='shm'); assert 'numpy' not in sys.modules; "
        "assert ep.empty(3).tolist() == [0, 0, 0]; assert ofipy.COMPLETION_DTYPE is ofipy.COMPLETION_DTYPE; ep.close()"
    )
    subprocess.run([sys.executable, "-P", "-c", script], check=True, timeout=120)


def test_a_thread_may_send_while_another_one_imports_numpy() -> None:
    """Who looks whether a value is an array waits for no import: the importing thread may wait for this one."""
    script = """
import sys, threading
import ofipy

asked, sent = threading.Event(), threading.Event()

class Pause:
    def find_spec(self, name, path=None, target=None):
        if name == "numpy.__config__":  # among the first that numpy imports
            asked.set()
            assert sent.wait(20), "the other thread waits too"

def send(ep):
    peer, memory = ep.insert(ep.address), bytearray(8)
    asked.wait()
    sending = ep.tsend(bytearray(b"messages"), peer, tag=1)
    ep.trecv_into(memory, tag=1).wait(timeout=60)
    sending.wait(timeout=60)
    sending = ep.tsend([memory, memoryview(memory)], peer, tag=2)
    ep.trecv_into([bytearray(7), bytearray(9)], tag=2).wait(timeout=60)
    sending.wait(timeout=60)
    sent.set()

sys.meta_path.insert(0, Pause())
with ofipy.open(provider="shm") as ep:
    thread = threading.Thread(target=send, args=(ep,))
    thread.start()
    import numpy
    thread.join()
"""
    subprocess.run([sys.executable, "-P", "-c", script], check=True, timeout=120)


def test_plain_arguments_need_no_function_in_python() -> None:
    """numpy 1 and 2 have their interface in C under different names; where it is not found, Python takes its place."""
    script = """
import sys
import numpy, ofipy

with ofipy.open(provider="shm") as ep:
    peer, array, received, called = ep.insert(ep.address), numpy.arange(4.0), numpy.empty(4), []
    old = numpy.empty(4)
    target = ep.register(ep.empty(32), access="remote_read|remote_write")
    remote = target.remote

    def post():
        yield ep.tsend(array, peer, tag=1)
        yield ep.write(array, peer, remote)
        yield ep.write(array, peer, remote, complete="delivery")
        yield ep.read(array, peer, remote)
        yield ep.atomic(array, peer, remote, op="sum")
        yield ep.fetch_atomic(array, peer, remote, op=ofipy.AtomicOp.SUM, into=old)
        yield ep.compare_atomic(array, array, peer, remote, into=old)

    def finish(requests):
        ep.trecv_into(received, tag=1).wait(timeout=30)
        for request in requests:
            request.wait(timeout=30)
        assert (received == array).all()

    finish(list(post()))  # loads numpy's interface
    sys.setprofile(lambda frame, event, argument: event == "call" and called.append(frame.f_code.co_qualname))
    requests = list(post())
    sys.setprofile(None)
    finish(requests)
    assert set(called) == {"post"}, called
"""
    subprocess.run([sys.executable, "-P", "-c", script], check=True, timeout=120)
