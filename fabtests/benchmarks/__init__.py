# SPDX-License-Identifier: BSD-3-Clause
"""Latency, bandwidth and message rate."""
