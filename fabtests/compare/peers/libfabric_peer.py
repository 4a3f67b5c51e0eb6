# SPDX-License-Identifier: BSD-3-Clause
"""libfabric behind ofipy's bridge: the same loops in C as of mode ``native``, over libfabric's own provider."""

import ofipy
from fabtests.compare.ofipy_side import Ofipy
from ofipy._base.binding import ffi

__all__ = ["Libfabric"]

# Under these names its RDM endpoints are found: 1.17 has those of the tcp provider as `net`.
NAMES = {"shm": ("ofi:shm",), "tcp": ("ofi:tcp", "ofi:net"), "verbs": ("ofi:verbs;ofi_rxm",)}
CONNECTED = {"verbs": ("ofi:verbs",)}


class Libfabric(Ofipy):
    """Mode ``native`` over the bridge; without a helper thread, which has nothing to do in it.

    Parameters
    ----------
    first : bool
        Whether this side sends first.
    over : str
        ``shm``, ``tcp`` or ``verbs``.
    connected : bool
        By endpoints of type ``msg``.
    """

    def __init__(self, first: bool, *, over: str, connected: bool) -> None:
        names = (CONNECTED if connected else NAMES)[over]
        kind, caps = ("msg", "msg") if connected else ("rdm", "tagged")
        found_of = ofipy.getinfo(provider=names, ep_type=kind, caps=caps, explain=True)
        report = {each.provider: each for each in found_of}
        found = [info for name in names for info in report[name].infos]
        if not found:
            raise ofipy.ProviderUnavailable(report[names[0]].reason or "is not there", provider=names[0])
        self._info = found[0]
        self._mode = "native-send" if connected else "native"
        super().__init__(first, provider=self._info.provider, progress="manual", connected=connected)

    def version(self) -> str:
        """Of the library, and its provider."""
        version = ffi.from_buffer("struct ofp_info *", self._info._record).provider_data[0]
        return f"{version >> 16}.{version & 0xFFFF} ({self._info.provider})"

    def prepare(self, size: int, mode: str) -> None:
        """There is one way, whatever ofipy does in its row."""
        super().prepare(size, self._mode)
