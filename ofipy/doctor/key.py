# SPDX-License-Identifier: BSD-3-Clause
"""The key that peers prove to each other."""

import stat
from collections.abc import Sequence

import ofipy
from ofipy._base.errors import FabricError
from ofipy.doctor.finding import Finding, State
from ofipy.doctor.parameter import parameter
from ofipy.doctor.private_file import FaultError, check_private
from ofipy.doctor.rules import find
from ofipy.jobs.keys import configured

__all__ = ["check_key"]


def check_key(infos: Sequence[ofipy.Info] = ()) -> Finding:
    """The key that peers prove to each other, who can read it, and the providers whose peers do not prove it."""
    rule = "process.key"
    path = parameter("OFIPY_AUTH_KEY_FILE")
    try:
        if configured() is None:
            return find(rule, State.OK, "none: peers on other hosts are not asked who they are")
    except FabricError as error:
        return find(rule, State.FAILED, str(error.message), sources=(path,))
    try:
        status = check_private("OFIPY_AUTH_KEY_FILE", path)
    except FaultError as error:
        return find(rule, State.FAILED, error.finding, sources=(path,), remedy=error.remedy)
    finding = f"{path}, mode {stat.S_IMODE(status.st_mode):o}"
    for proof, says in (
        (ofipy.PeerProof.KEY, "proven by peers of"),
        (ofipy.PeerProof.NONE, "not by those of"),
        (ofipy.PeerProof.USER, "processes of the same user need none over"),
    ):
        if names := ", ".join(requiring(infos, proof)):
            finding += f"; {says} {names}"
    return find(rule, State.OK, finding, sources=(path,))


def requiring(infos: Sequence[ofipy.Info], proof: ofipy.PeerProof) -> list[str]:
    """Providers that require this of peers; with the type of endpoint, where a provider's types differ."""
    kinds: dict[str, dict[str, ofipy.PeerProof]] = {}
    for info in infos:
        kinds.setdefault(info.provider.partition(":")[0], {})[info.ep_type.name.lower()] = info.peer_proof
    names = []
    for provider, types in kinds.items():
        if len(set(types.values())) == 1:
            names += [provider] if proof in types.values() else []
        else:
            names += [f"{provider} {ep_type}" for ep_type, required in types.items() if required is proof]
    return names
