# SPDX-License-Identifier: BSD-3-Clause
"""Whether a provider has what a program needs."""

import os

import ofipy
from fabtests.base.program import NotRun

__all__ = ["require"]


def require(caps: str, *, provider: str | None, ep_type: str) -> None:
    """End as not run when the provider lacks one of these capabilities, in this type of endpoint.

    Raises
    ------
    NotRun
        With what is missing.
    """
    provider = provider or os.environ.get("OFIPY_PROVIDER")
    infos = ofipy.getinfo(provider=provider, ep_type=ep_type)
    if not infos and ofipy.getinfo(provider=provider):
        raise NotRun(f"endpoint type {ep_type}: {provider} has none")
    missing = [
        cap
        for cap in caps.split("|")
        if infos and not ofipy.getinfo(provider=provider, ep_type=ep_type, caps=cap)
    ]
    if missing:
        raise NotRun(f"capability {', '.join(missing)}: {provider} lacks it for endpoints of type {ep_type}")
