# SPDX-License-Identifier: BSD-3-Clause
"""What an endpoint says of its peers: what they have proven, and only while they are connected."""

from collections.abc import Callable
from pathlib import Path

import pytest
from connected import TIMEOUT, OpenDomain, connect
from sides import Target

import ofipy
from ofipy.cli.key import new_key

OpenEndpoint = Callable[..., ofipy.Endpoint]

NOTHING = ofipy.Security(proven=False, encrypted=False, cipher=None)


def is_proven(info: ofipy.Info, *, keyed: bool) -> bool:
    """Whether a peer on this host has proven what the info says."""
    if info.peer_proof is ofipy.PeerProof.KEY:
        # Without a key, link has one of the user's own within a host.
        return keyed or info.provider.partition(":")[0] == "link"
    return info.peer_proof is ofipy.PeerProof.USER


def check(found: ofipy.Security, *, proven: bool) -> None:
    assert found.proven is proven
    assert found.encrypted is (found.cipher is not None)


@pytest.fixture(params=[False, True], ids=["no key", "key"])
def keyed(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether a key is set."""
    monkeypatch.delenv("OFIPY_AUTH_KEY_FILE", raising=False)
    if request.param:
        new_key(tmp_path / "key")
        monkeypatch.setenv("OFIPY_AUTH_KEY_FILE", str(tmp_path / "key"))
    else:
        monkeypatch.setenv("OFIPY_ENCRYPTION", "off")
    return bool(request.param)


@pytest.mark.untagged
@pytest.mark.datagrams
def test_a_connected_peer_has_proven_what_the_info_says(
    target: Target, keyed: bool, open_endpoint: OpenEndpoint
) -> None:
    if keyed and target.over_several_ways and not ofipy.getinfo(provider=target.provider):
        reason = ofipy.getinfo(provider=target.provider, explain=True)[0].reason
        assert reason is not None
        assert "prove no key" in reason
        return
    here, there = open_endpoint(), open_endpoint()
    peer = here.insert(there.address)
    assert here.security(peer) == NOTHING
    receive = there.recv()
    here.send(b"x", peer).wait(timeout=TIMEOUT)
    source = receive.wait(timeout=TIMEOUT).source
    check(here.security(peer), proven=is_proven(here.info, keyed=keyed))
    if source is not None:
        check(there.security(source), proven=is_proven(there.info, keyed=keyed))


@pytest.mark.needs("connections")
@pytest.mark.untagged
def test_the_one_peer_needs_no_name(keyed: bool, open_domain: OpenDomain) -> None:
    listener, client = open_domain().passive_endpoint(), open_domain().endpoint().enable()
    listener.listen()
    assert client.security() == NOTHING
    server = connect(listener, client)
    for each in (client, server):
        check(each.security(), proven=is_proven(each.info, keyed=keyed))
        assert each.security(each.peer) == each.security()


def test_what_is_no_peer_is_refused(ep: ofipy.Endpoint, me: ofipy.Peer) -> None:
    assert ep.alias().security(me) == ep.security(me)
    with pytest.raises(ofipy.UnknownPeer):
        ep.security(4095)
    with pytest.raises(ofipy.InvalidArgument, match="needs a Peer"):
        ep.security()
    ep.av.remove(me)
    with pytest.raises(ofipy.FabricError):
        ep.security(me)
    ep.close()
    with pytest.raises(ofipy.Closed):
        ep.security(me)
