# SPDX-License-Identifier: BSD-3-Clause
"""What operations move: regions, remote handles, buffers, allocated arrays, records."""
