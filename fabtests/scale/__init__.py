# SPDX-License-Identifier: BSD-3-Clause
"""``fabtests scale``: rates of many processes, and whether each has its share."""
