# SPDX-License-Identifier: BSD-3-Clause
"""What every storey needs: the binding and its exceptions, flags, limits, parameters, lifetimes."""
