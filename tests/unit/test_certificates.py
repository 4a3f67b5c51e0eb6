# SPDX-License-Identifier: BSD-3-Clause
"""Certificates of both sides: which are refused, by name, and what both sides are told."""

from __future__ import annotations

import logging
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from test_tcp_encryption import NODE, TIMEOUT, find_openssl, open_endpoint, refusals

import ofipy
from ofipy.cli.key import new_key
from tests.certificates import Authority, Certificate, is_openssl_there

pytestmark = pytest.mark.skipif(
    not (find_openssl() and is_openssl_there()), reason="libssl.so.3 or the command openssl is not installed"
)

Setting = Callable[..., None]


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("certificates") / "ours")


@pytest.fixture(scope="module")
def good(authority: Authority) -> Certificate:
    return authority.sign("good", names="IP:127.0.0.1,DNS:peer.test")


@pytest.fixture
def setting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Setting:
    """Set a certificate and the rest, for what is opened next."""

    def set_it(
        certificate: Certificate | None, *, name: str = "", encryption: str = "required", key: str = "one"
    ) -> None:
        file = tmp_path / f"{key}.key"
        if not file.exists():
            new_key(file)
        variables = {"OFIPY_AUTH_KEY_FILE": str(file), "OFIPY_ENCRYPTION": encryption}
        certified = certificate.environment(name) if certificate is not None else {}
        for variable in ("CERT", "KEY", "CA", "NAME"):
            variables[f"OFIPY_TLS_{variable}"] = certified.get(f"OFIPY_TLS_{variable}", "")
        for variable, value in variables.items():
            monkeypatch.setenv(variable, value)

    return set_it


def check_refused(server: ofipy.Endpoint, caplog: pytest.LogCaptureFixture) -> tuple[str, str]:
    """A peer that is opened now cannot send; what it is told, and what the server's log says."""
    with open_endpoint() as client:
        peer = client.insert(server.address)
        with pytest.raises(ofipy.AccessDenied) as caught:
            client.tsend(b"x", peer, tag=1).wait(timeout=TIMEOUT)
        # The server's own words; the client's loss of its peer is logged as well.
        deadline = time.monotonic() + TIMEOUT
        while not any(" refuses " in text for text in refusals(caplog)) and time.monotonic() < deadline:
            time.sleep(0.001)
    return str(caught.value), " ".join(refusals(caplog))


@pytest.mark.parametrize("name", ["", "peer.test"])
def test_both_are_encrypted_by_certificates(setting: Setting, good: Certificate, name: str) -> None:
    setting(good, name=name)
    with open_endpoint(service="0") as server, open_endpoint() as client:
        peer = client.insert(server.address)
        client.tsend(b"x" * 100_000, peer, tag=1).wait(timeout=TIMEOUT)
        source = server.trecv(tag=1).wait(timeout=TIMEOUT).source
        assert source is not None
        for security in (client.security(peer), server.security(source)):
            assert security.proven
            assert security.encrypted


def test_connected_endpoints_are_encrypted(setting: Setting, good: Certificate) -> None:
    setting(good)
    with (
        ofipy.listen(provider="tcp", node=NODE) as listener,
        ofipy.open(provider="tcp", node=NODE, ep_type="msg") as client,
    ):
        connection = client.connect(listener.address)
        with listener.wait(timeout=TIMEOUT).accept() as server:
            connection.wait(timeout=TIMEOUT)
            assert client.security().encrypted
            assert server.security().encrypted


REFUSED = {
    "expired": ({"days": -1}, "certificate has expired"),
    "of another name": ({"names": "IP:192.0.2.1"}, "IP address mismatch"),
    "without an address": ({"names": "DNS:peer.test"}, "IP address mismatch"),
    "for the other role": ({"usage": "codeSigning"}, "unsuitable certificate purpose"),
}


@pytest.mark.parametrize("at_client", [False, True], ids=["of the server", "of the client"])
@pytest.mark.parametrize("fault", REFUSED)
def test_a_certificate_is_refused_by_name(
    setting: Setting,
    authority: Authority,
    good: Certificate,
    caplog: pytest.LogCaptureFixture,
    fault: str,
    at_client: bool,
) -> None:
    caplog.set_level(logging.WARNING, logger="ofipy")
    changes, why = REFUSED[fault]
    bad = authority.sign("bad", **changes)  # type: ignore[arg-type]
    setting(good if at_client else bad)
    with open_endpoint(service="0") as server:
        setting(bad if at_client else good)
        told, logged = check_refused(server, caplog)
    refusing, refused = (logged, told) if at_client else (told, logged)
    assert f"the peer's certificate is refused ({why})" in refusing
    assert "OFIPY_TLS_CA" in refusing
    assert "the peer refused the TLS connection" in refused


@pytest.mark.parametrize("at_client", [False, True], ids=["of the server", "of the client"])
def test_a_foreign_certificate_is_refused_by_name(
    setting: Setting,
    good: Certificate,
    caplog: pytest.LogCaptureFixture,
    tmp_path: Path,
    at_client: bool,
) -> None:
    caplog.set_level(logging.WARNING, logger="ofipy")
    foreign = Authority(tmp_path / "theirs").sign("foreign")
    foreign = Certificate(foreign.file, foreign.key, good.authority)
    setting(good if at_client else foreign)
    with open_endpoint(service="0") as server:
        setting(foreign if at_client else good)
        told, logged = check_refused(server, caplog)
    assert "unable to get local issuer certificate" in (logged if at_client else told)


@pytest.mark.parametrize("at_client", [False, True], ids=["at the server", "at the client"])
def test_a_side_with_the_key_alone_is_refused_by_name(
    setting: Setting, good: Certificate, caplog: pytest.LogCaptureFixture, at_client: bool
) -> None:
    caplog.set_level(logging.WARNING, logger="ofipy")
    setting(None if at_client else good)
    with open_endpoint(service="0") as server:
        setting(good if at_client else None)
        told, logged = check_refused(server, caplog)
    assert "OFIPY_TLS_CERT" in told
    assert "OFIPY_TLS_CERT" in logged


def test_another_key_is_refused_within_tls(
    setting: Setting, good: Certificate, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, logger="ofipy")
    setting(good)
    with open_endpoint(service="0") as server:
        setting(good, key="other")
        told, logged = check_refused(server, caplog)
    assert "the peer has another key" in told
    assert "the peer has another key" in logged


@pytest.mark.parametrize(
    ("certified", "options"),
    [
        (True, ("-tls1_2",)),
        (False, ("-tls1_3",)),
        (True, ("-tls1_3", "-alpn", "http/1.1")),
    ],
    ids=["TLS 1.2", "no certificate", "another protocol"],
)
def test_a_wrong_client_is_refused(
    setting: Setting, good: Certificate, certified: bool, options: tuple[str, ...]
) -> None:
    setting(good)
    with open_endpoint() as ep, open_endpoint() as other:
        address = f"{NODE}:{str(ep.address).rpartition(':')[2]}"
        own = ("-cert", str(good.file), "-key", str(good.key)) if certified else ()
        alpn = () if "-alpn" in options else ("-alpn", "ofipy/1")
        command = ["openssl", "s_client", "-connect", address, *own, *alpn, *options]
        subprocess.run(command, input="", capture_output=True, text=True, timeout=TIMEOUT, check=False)
        assert ep.stats().peers_up == 0
        other.tsend(b"x", other.insert(ep.address), tag=1).wait(timeout=TIMEOUT)
        assert ep.trecv(tag=1).wait(timeout=TIMEOUT).data == b"x"


@pytest.mark.parametrize(
    ("change", "error", "said"),
    [
        ({"OFIPY_TLS_KEY": ""}, ofipy.ConfigError, "OFIPY_TLS_KEY"),
        ({"OFIPY_TLS_CA": ""}, ofipy.ConfigError, "OFIPY_TLS_CA"),
        ({"OFIPY_AUTH_KEY_FILE": ""}, ofipy.ConfigError, "OFIPY_TLS_CERT needs a key"),
        ({"OFIPY_TLS_CERT": "/nowhere"}, ofipy.InvalidArgument, "OFIPY_TLS_CERT=/nowhere"),
        ({"OFIPY_TLS_KEY": "/nowhere"}, ofipy.InvalidArgument, "OFIPY_TLS_KEY=/nowhere"),
        ({"OFIPY_TLS_CA": "/nowhere"}, ofipy.InvalidArgument, "OFIPY_TLS_CA=/nowhere"),
    ],
    ids=[
        "no private key",
        "no authority",
        "no key",
        "no such file",
        "no such private key",
        "no such authority",
    ],
)
def test_files_that_cannot_be_used(
    setting: Setting,
    good: Certificate,
    monkeypatch: pytest.MonkeyPatch,
    change: dict[str, str],
    error: type[ofipy.FabricError],
    said: str,
) -> None:
    setting(good, encryption="auto")
    for variable, value in change.items():
        monkeypatch.setenv(variable, value)
    with pytest.raises(error, match=said):
        open_endpoint()


def test_a_private_key_is_its_owners(setting: Setting, authority: Authority) -> None:
    certificate = authority.sign("open")
    certificate.key.chmod(0o640)
    setting(certificate)
    with pytest.raises(ofipy.FabricError, match="chmod 600"):
        open_endpoint()
