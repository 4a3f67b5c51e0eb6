# SPDX-License-Identifier: BSD-3-Clause
"""TCP in libfabric's wire protocol: see README.md beside this file."""

from ofipy._discovery.providers import Provider

provider = Provider(name="tcp", module="ofipy.providers.tcp._tcp")
