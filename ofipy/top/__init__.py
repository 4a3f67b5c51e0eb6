# SPDX-License-Identifier: BSD-3-Clause
"""What ``ofipy top`` shows: what processes, endpoints, peers and ports do at this moment.

Nothing of it is imported by ``import ofipy``.
"""
