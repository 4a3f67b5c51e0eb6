# SPDX-License-Identifier: BSD-3-Clause
"""Lists of programs, and who runs them."""
