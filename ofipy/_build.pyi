# SPDX-License-Identifier: BSD-3-Clause
COMMIT: str
COMPILER: str
