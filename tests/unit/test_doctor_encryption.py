# SPDX-License-Identifier: BSD-3-Clause
"""What the doctor finds out about keys and certificates without a connection: each fault, by name."""

from __future__ import annotations

import ipaddress
import shutil
import subprocess
from pathlib import Path

import pytest

from ofipy._base.encryption import CIPHERS
from ofipy.cli.key import new_key
from ofipy.doctor import encryption
from ofipy.doctor.encryption import check_accepted_keys, check_encryption, list_addresses
from ofipy.doctor.finding import Finding, State
from ofipy.doctor.private_file import FaultError
from tests.certificates import Authority, Certificate, is_openssl_there

HERE = ipaddress.ip_address("192.0.2.7")
ELSEWHERE = ipaddress.ip_address("198.51.100.9")


def is_library_there() -> bool:
    try:
        encryption._read_version()
    except FaultError:
        return False
    return True


needs_library = pytest.mark.skipif(not is_library_there(), reason="libssl.so.3 is not installed")
needs_command = pytest.mark.skipif(
    not is_openssl_there() or encryption.certificate is None,
    reason="the command openssl, or Python's module ssl, is not installed",
)


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("certificates") / "ours")


@pytest.fixture(autouse=True)
def key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "job.key"
    new_key(path)
    monkeypatch.setenv("OFIPY_AUTH_KEY_FILE", str(path))
    for variable in ("OFIPY_ENCRYPTION", "OFIPY_AUTH_KEY_FILE_ACCEPTED"):
        monkeypatch.delenv(variable, raising=False)
    for variable in ("CERT", "KEY", "CA", "NAME"):
        monkeypatch.delenv(f"OFIPY_TLS_{variable}", raising=False)
    return path


@pytest.fixture
def judge(monkeypatch: pytest.MonkeyPatch):
    """Judge the settings with a certificate."""

    def judge_certificate(certificate: Certificate, name: str = "", **settings: str) -> Finding:
        variables = certificate.environment(name) | settings
        for variable, value in variables.items():
            monkeypatch.setenv(variable, value)
        return check_encryption([HERE])

    return judge_certificate


def check_failed(found: Finding, finding: str, remedy: str) -> None:
    assert found.state is State.FAILED
    assert finding in found.text
    assert remedy in found.remedy


class TestSettings:
    @pytest.mark.parametrize("value", ["auto", "off"])
    def test_a_key_alone_encrypts_nothing(self, monkeypatch: pytest.MonkeyPatch, value: str) -> None:
        monkeypatch.setenv("OFIPY_ENCRYPTION", value)
        found = check_encryption()
        assert (found.state, found.text) == (State.OK, "no connections over tcp")

    @needs_library
    def test_by_the_key(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("OFIPY_ENCRYPTION", "required")
        found = check_encryption()
        assert found.state is State.OK
        assert "all, by TLS 1.3 (OpenSSL 3" in found.text
        assert "with the key" in found.text

    def test_a_value_that_means_nothing(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("OFIPY_ENCRYPTION", "perhaps")
        assert "OFIPY_ENCRYPTION=perhaps" in check_encryption().text

    def test_no_key(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("OFIPY_ENCRYPTION", "required")
        monkeypatch.setenv("OFIPY_AUTH_KEY_FILE", "")
        check_failed(check_encryption(), "needs a key", "ofipy key new")

    def test_some_of_the_files(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("OFIPY_TLS_CERT", "cert.pem")
        check_failed(check_encryption(), "OFIPY_TLS_KEY, OFIPY_TLS_CA too", "set OFIPY_TLS_CERT")

    def test_no_openssl(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("OFIPY_ENCRYPTION", "required")
        monkeypatch.setattr(encryption, "_LIBSSL", "libssl.so.of-no-machine")
        check_failed(check_encryption(), "libssl.so.of-no-machine", "install libssl3")


@needs_command
@needs_library
class TestCertificates:
    def test_a_good_one(self, authority: Authority, judge) -> None:
        found = judge(authority.sign("good", names=f"IP:{HERE},DNS:peer.test", days=60))
        assert found.state is State.OK
        assert "between hosts, by TLS 1.3" in found.text
        assert f"IP Address:{HERE}, DNS:peer.test" in found.text
        assert "valid until" in found.text

    def test_one_that_ends_soon(self, authority: Authority, judge) -> None:
        found = judge(authority.sign("short", names=f"IP:{HERE}", days=3))
        assert found.state is State.WARNING
        assert "ends soon" in found.text

    def test_one_that_has_expired(self, authority: Authority, judge) -> None:
        found = judge(authority.sign("expired", names=f"IP:{HERE}", days=-1))
        check_failed(found, "certificate has expired", "sign a new certificate")

    @pytest.mark.parametrize("usage", ["serverAuth", "clientAuth"])
    def test_one_for_half_of_the_roles(self, authority: Authority, judge, usage: str) -> None:
        found = judge(authority.sign(f"half-{usage}", names=f"IP:{HERE}", days=60, usage=usage))
        check_failed(found, "certificate purpose", "extendedKeyUsage=serverAuth,clientAuth")

    def test_one_of_another_authority(self, authority: Authority, tmp_path: Path, judge) -> None:
        foreign = Authority(tmp_path / "foreign").sign("foreign", names=f"IP:{HERE}", days=60)
        found = judge(Certificate(foreign.file, foreign.key, authority.file))
        check_failed(found, "peers refuse it", "OFIPY_TLS_CA")

    def test_the_key_of_another_one(self, authority: Authority, judge) -> None:
        one, other = (authority.sign(name, names=f"IP:{HERE}", days=60) for name in ("one", "other"))
        found = judge(Certificate(one.file, other.key, authority.file))
        check_failed(found, "is not the key of the certificate", "made with")

    def test_a_key_that_others_may_read(self, authority: Authority, tmp_path: Path, judge) -> None:
        good = authority.sign("readable", names=f"IP:{HERE}", days=60)
        copy = Path(shutil.copy(good.key, tmp_path / "copy.key"))
        copy.chmod(0o640)
        found = judge(Certificate(good.file, copy, authority.file))
        check_failed(found, "has mode 640", "chmod 600")

    def test_a_key_with_a_password(self, authority: Authority, tmp_path: Path, judge) -> None:
        good, locked = authority.sign("locked", names=f"IP:{HERE}", days=60), tmp_path / "locked.key"
        command = ["openssl", "pkey", "-in", good.key, "-aes256", "-passout", "pass:x", "-out", locked]
        subprocess.run(command, check=True, capture_output=True, timeout=60)
        locked.chmod(0o600)
        found = judge(Certificate(good.file, locked, authority.file))
        check_failed(found, "needs a password", "openssl pkey")

    @pytest.mark.parametrize("variable", ["OFIPY_TLS_CERT", "OFIPY_TLS_KEY", "OFIPY_TLS_CA"])
    @pytest.mark.parametrize("content", [None, "no certificate"])
    def test_a_file_that_is_none(
        self,
        authority: Authority,
        tmp_path: Path,
        judge,
        variable: str,
        content: str | None,
    ) -> None:
        path = tmp_path / "none.pem"
        if content is not None:
            path.write_text(content)
            path.chmod(0o600)
        found = judge(authority.sign("there", names=f"IP:{HERE}", days=60), **{variable: str(path)})
        check_failed(found, f"{variable}={path}", "")
        assert found.remedy

    def test_a_name_that_all_have(self, authority: Authority, judge) -> None:
        certificate = authority.sign("named", names="DNS:peer.test", days=60)
        assert judge(certificate, "peer.test").state is State.OK
        check_failed(
            judge(certificate, "other.test"), "does not name OFIPY_TLS_NAME=other.test", "DNS:other.test"
        )

    def test_addresses_that_it_does_not_name(self, authority: Authority, judge) -> None:
        check_failed(
            judge(authority.sign("elsewhere", names=f"IP:{ELSEWHERE}", days=60)),
            f"none of this host's addresses ({HERE})",
            "OFIPY_TLS_NAME",
        )
        judge(authority.sign("half", names=f"IP:{HERE}", days=60))
        found = check_encryption([HERE, ELSEWHERE])
        assert found.state is State.WARNING
        assert f"at {ELSEWHERE}" in found.text

    def test_encryption_is_off(self, authority: Authority, judge) -> None:
        certificate = authority.sign("unused", names=f"IP:{HERE}", days=60)
        found = judge(certificate, OFIPY_ENCRYPTION="off")
        assert found.state is State.OK
        assert "OFIPY_ENCRYPTION is off" in found.text

    def test_a_python_without_ssl(
        self,
        authority: Authority,
        judge,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        certificate = authority.sign("unseen", names=f"IP:{HERE}", days=60)
        monkeypatch.setattr(encryption, "certificate", None)
        found = judge(certificate)
        assert found.state is State.WARNING
        assert "without the module ssl" in found.text


class TestAcceptedKeys:
    def test_none(self) -> None:
        found = check_accepted_keys()
        assert (found.state, found.text) == (State.OK, "none beside the key")

    def test_two(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        paths = [tmp_path / "old", tmp_path / "older"]
        for path in paths:
            new_key(path)
        monkeypatch.setenv("OFIPY_AUTH_KEY_FILE_ACCEPTED", ":".join(map(str, paths)))
        found = check_accepted_keys()
        assert found.state is State.OK
        assert all(str(path) in found.text for path in paths)
        paths[1].chmod(0o604)
        check_failed(check_accepted_keys(), "mode 604", f"chmod 600 {paths[1]}")
        paths[1].chmod(0o600)
        paths[1].write_bytes(b"short")
        check_failed(check_accepted_keys(), "it has 5", "copy")
        paths[1].unlink()
        check_failed(check_accepted_keys(), "No such file", "name a file")

    def test_without_one_to_prove(self, key: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("OFIPY_AUTH_KEY_FILE_ACCEPTED", str(key))
        monkeypatch.setenv("OFIPY_AUTH_KEY_FILE", "")
        check_failed(check_accepted_keys(), "is not set", "set both")


def test_the_ciphers_are_those_of_tcp() -> None:
    source = (Path(__file__).parents[2] / "providers/tcp/stream/tls_context.c").read_text()
    assert f'#define CIPHER_SUITES "{":".join(CIPHERS)}"' in source


def test_loopback_is_no_address_for_others() -> None:
    assert list_addresses(["lo", "no-such-interface"]) == []
