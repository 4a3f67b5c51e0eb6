# SPDX-License-Identifier: BSD-3-Clause
"""The fake provider: declares to ofipy the shared object that holds it."""

from typing import Final

from ofipy import Provider

__all__ = ["provider"]

provider: Final = Provider(name="fake", module="ofipy_fake_provider._fake")
