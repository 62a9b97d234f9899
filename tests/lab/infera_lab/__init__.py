# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The lab: simulated GPU nodes on one Linux machine, in which the real roles run. Used as `python3 -m infera_lab`."""
