# SPDX-License-Identifier: BSD-3-Clause
"""Jobs: what launchers start as several processes finds itself here. See docs/explanation/jobs.md."""
