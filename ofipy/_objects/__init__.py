# SPDX-License-Identifier: BSD-3-Clause
"""What a program opens: fabric, domain, endpoint, alias, receive context, listener."""
