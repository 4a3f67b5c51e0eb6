# SPDX-License-Identifier: BSD-3-Clause
"""What is certain of a peer ends with its connection, and is of the next one anew."""

from pathlib import Path

import pytest

import ofipy
from ofipy.cli.key import new_key

TIMEOUT = 20


@pytest.fixture
def key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Set a key."""
    new_key(tmp_path / "key")
    monkeypatch.setenv("OFIPY_AUTH_KEY_FILE", str(tmp_path / "key"))


@pytest.mark.usefixtures("key")
@pytest.mark.parametrize("provider", ["shm", "tcp", "link:shm+tcp", "link:tcp"])
def test_nothing_is_certain_of_a_lost_peer(provider: str) -> None:
    with ofipy.open(provider=provider) as ep:
        with ofipy.open(provider=provider, progress="auto") as other:
            peer = ep.insert(bytes(other.address), wait=TIMEOUT)
            assert ep.security(peer) == ofipy.Security(proven=True, encrypted=False, cipher=None)
            receive = ep.trecv(peer, tag=1)
        with pytest.raises(ofipy.PeerLost):
            receive.wait(timeout=TIMEOUT)
        assert ep.security(peer) == ofipy.Security(proven=False, encrypted=False, cipher=None)


def test_without_a_key_only_its_user_is_proven(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OFIPY_AUTH_KEY_FILE", raising=False)
    monkeypatch.setenv("OFIPY_INTERFACE", "lo")  # link listens to the network where it is asked to
    proven = {}
    for provider in ("shm", "tcp", "link:shm+tcp", "link:tcp"):
        with (
            ofipy.open(provider=provider) as ep,
            ofipy.open(provider=provider, progress="auto") as other,
        ):
            proven[provider] = ep.security(ep.insert(bytes(other.address), wait=TIMEOUT)).proven
    # Within a host link's TCP requires a key of the user's own.
    assert proven == {"shm": True, "tcp": False, "link:shm+tcp": True, "link:tcp": True}


@pytest.mark.usefixtures("key")
def test_an_object_is_taken_over_named_parts_of_link() -> None:
    with ofipy.open(provider="link:shm+tcp") as ep:
        ep.tsend_obj({"a": 1}, ep.insert(ep.address), tag=1)
        assert ep.trecv_obj(tag=1).wait(timeout=TIMEOUT) == {"a": 1}
