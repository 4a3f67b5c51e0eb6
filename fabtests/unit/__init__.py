# SPDX-License-Identifier: BSD-3-Clause
"""What one process may rely on."""
