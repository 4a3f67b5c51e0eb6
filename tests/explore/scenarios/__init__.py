# SPDX-License-Identifier: BSD-3-Clause
"""All scenarios. Each module here has a function ``list_scenarios(build)``."""

import pkgutil
from importlib import import_module

from ..build import Build
from ..scenario import Scenario

__all__ = ["list_scenarios"]


def list_scenarios(build: Build) -> list[Scenario]:
    """The scenarios of all modules, over a build.

    Raises
    ------
    ValueError
        If two have one name.
    """
    found: dict[str, Scenario] = {}
    for module in sorted(entry.name for entry in pkgutil.iter_modules(__path__)):
        for scenario in import_module(f"{__name__}.{module}").list_scenarios(build):
            if scenario.name in found:
                raise ValueError(f"two scenarios are named {scenario.name}")
            found[scenario.name] = scenario
    return list(found.values())
