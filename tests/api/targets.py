# SPDX-License-Identifier: BSD-3-Clause
"""Which providers are tested, with which kinds of endpoint."""

import pytest

import ofipy

DEFAULT_PROVIDERS = ("shm", "tcp", "fake")


def targets(config: pytest.Config) -> list[str]:
    """Providers, and those again with ``/msg`` that have connected endpoints."""
    asked = config.getoption("--provider")
    result = []
    for name in asked or DEFAULT_PROVIDERS:
        infos = [info for report in ofipy.getinfo(provider=name, explain=True) for info in report.infos]
        if asked and not infos:
            raise pytest.UsageError(f"provider {name} is not available")
        kinds = {info.ep_type for info in infos}
        result += [name] * (ofipy.EndpointType.RDM in kinds)
        result += [f"{name}/msg"] * (ofipy.EndpointType.MSG in kinds)
    return result


def lacks(target: str, need: str | None) -> bool:
    """Whether a target has no such capability; ``connections`` is one."""
    provider, _, kind = target.partition("/")
    if need == "connections":
        return not ofipy.getinfo(provider=provider, ep_type="msg")
    info = ofipy.getinfo(provider=provider, ep_type=kind or "rdm")[0]
    return need is not None and not info.caps & ofipy.Cap[need.upper()]
