# SPDX-License-Identifier: BSD-3-Clause
"""What there is and where: providers, infos, addresses, address vectors."""
