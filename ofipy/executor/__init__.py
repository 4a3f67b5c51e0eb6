# SPDX-License-Identifier: BSD-3-Clause
"""An executor whose workers are other processes: :class:`ofipy.Executor`, and ``python -m ofipy.executor``.

``import ofipy`` imports nothing of this package. docs/explanation/executor.md describes who owns tasks and futures.
"""

from ofipy.executor.call import RemoteTraceback
from ofipy.executor.executor import Executor

__all__ = ["Executor", "RemoteTraceback"]
