"""The lab: simulated GPU nodes on one Linux machine, in which the real roles run. Used as `python3 -m infera_lab`."""
