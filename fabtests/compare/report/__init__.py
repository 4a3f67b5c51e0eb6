# SPDX-License-Identifier: BSD-3-Clause
"""What can be made of a result: charts in files and in the terminal, a page, a judgement against an earlier one.

All of it reads the document of ``--json``, so that one which was stored does as well.
"""
