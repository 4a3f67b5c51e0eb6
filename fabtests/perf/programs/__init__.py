# SPDX-License-Identifier: BSD-3-Clause
"""The programs, one a file, named as perftest names its own behind `ib_`."""
