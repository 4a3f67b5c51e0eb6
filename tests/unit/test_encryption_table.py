# SPDX-License-Identifier: BSD-3-Clause
"""The table of ``OFIPY_ENCRYPTION`` in the reference, cell by cell: what holds towards a peer of each provider."""

from __future__ import annotations

from pathlib import Path

import pytest
from test_tcp_encryption import find_infos_without_encryption, find_openssl

import ofipy
from ofipy.cli.key import new_key
from tests.certificates import Authority, Certificate, is_openssl_there

needs_openssl = pytest.mark.skipif(
    not (find_openssl() and is_openssl_there()), reason="libssl.so.3 or the command openssl is not installed"
)

TIMEOUT = 20
PLAIN, PROVEN, ENCRYPTED = "plain", "proven", "encrypted"
NO_KEY, KEY, CERTIFICATE = "no key", "a key", "a certificate"
NO = ofipy.ConfigError
COLUMNS = (
    *((encryption, NO_KEY) for encryption in ("auto", "required", "off")),
    *((encryption, KEY) for encryption in ("auto", "required", "off")),
    *((encryption, CERTIFICATE) for encryption in ("auto", "required", "off")),
)
# By provider, and whether the peer is on another host.
TABLE = {
    ("tcp", False): (PLAIN, NO, PLAIN, PROVEN, ENCRYPTED, PROVEN, PROVEN, ENCRYPTED, PROVEN),
    ("tcp", True): (PLAIN, NO, PLAIN, PROVEN, ENCRYPTED, PROVEN, ENCRYPTED, ENCRYPTED, PROVEN),
    ("shm", False): (PROVEN,) * 9,
    ("link:shm+tcp", False): (PROVEN, NO, *(PROVEN,) * 7),
    ("link:shm+tcp", True): (PROVEN, NO, PROVEN, PROVEN, ENCRYPTED, PROVEN, ENCRYPTED, ENCRYPTED, PROVEN),
}
CELLS = [
    pytest.param(provider, far, *column, expected, id=f"{provider}-{far=}-{column}")
    for (provider, far), row in TABLE.items()
    for column, expected in zip(COLUMNS, row, strict=True)
]


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    return Authority(tmp_path_factory.mktemp("certificates") / "authority").sign("peer")


@pytest.fixture
def key(tmp_path: Path) -> Path:
    new_key(tmp_path / "key")
    return tmp_path / "key"


def describe(found: ofipy.Security) -> str:
    if found.encrypted:
        return ENCRYPTED
    return PROVEN if found.proven else PLAIN


@needs_openssl
@pytest.mark.parametrize(("provider", "far", "encryption", "by", "expected"), CELLS)
def test_a_cell(
    provider: str,
    far: bool,
    encryption: str,
    by: str,
    expected: str | type[ofipy.FabricError],
    key: Path,
    certificate: Certificate,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OFIPY_AUTH_KEY_FILE", "" if by == NO_KEY else str(key))
    for variable, value in certificate.environment().items():
        monkeypatch.setenv(variable, value if by == CERTIFICATE else "")
    monkeypatch.setenv("OFIPY_ENCRYPTION", encryption)
    monkeypatch.setenv("OFIPY_INTERFACE", "lo")  # link listens to the network where it is asked to
    monkeypatch.setenv("OFIPY_HOST_ID", "here")
    if isinstance(expected, type):
        with pytest.raises(expected, match="OFIPY_ENCRYPTION"):
            ofipy.open(provider=provider)
        return
    with ofipy.open(provider=provider) as ep:
        monkeypatch.setenv("OFIPY_HOST_ID", "there" if far else "here")
        with ofipy.open(provider=provider, progress="auto") as other:
            peer = ep.insert(bytes(other.address), wait=TIMEOUT)
            assert describe(ep.security(peer)) == expected


@pytest.mark.parametrize("encryption", ["auto", "required", "off"])
def test_who_cannot_encrypt_opens_unless_all_must(
    encryption: str, key: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OFIPY_AUTH_KEY_FILE", str(key))
    monkeypatch.setenv("OFIPY_ENCRYPTION", encryption)
    for info in find_infos_without_encryption():
        if encryption != "required":
            ofipy.Fabric(info).domain().close()
            continue
        with pytest.raises(ofipy.NotSupported, match="cannot encrypt"):
            ofipy.Fabric(info).domain()
