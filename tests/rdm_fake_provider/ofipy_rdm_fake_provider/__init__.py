# SPDX-License-Identifier: BSD-3-Clause
"""A packet channel within one process, and the endpoints that native/rdm makes of it."""

from typing import Final

from ofipy import Provider

__all__ = ["provider"]

provider: Final = Provider(name="rdmfake", module="ofipy_rdm_fake_provider._rdmfake")
