# SPDX-License-Identifier: BSD-3-Clause
"""What a program of two sides may rely on."""
