# SPDX-License-Identifier: BSD-3-Clause
"""The providers that come with ofipy, one folder each. They are found by entry points, as anybody's are."""
