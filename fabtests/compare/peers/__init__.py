# SPDX-License-Identifier: BSD-3-Clause
"""The peers: one module each, imported in the workers only, so that a missing package is an absent peer."""
