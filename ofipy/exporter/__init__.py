# SPDX-License-Identifier: BSD-3-Clause
"""What ``ofipy exporter`` tells Prometheus: statistics of processes, summed, and what devices have counted.

Nothing of it is imported by ``import ofipy``. Only ``exposition.py`` and ``server.py`` need prometheus-client.
"""
