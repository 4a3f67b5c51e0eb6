# SPDX-License-Identifier: BSD-3-Clause
"""A small virtual machine that runs a command over this machine's files: see README.md."""
