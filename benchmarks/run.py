"""Measure kernelscope beside SQLite, pandas and nsys on traces of any size.

``python benchmarks/run.py --kernels 1e4 1e5 1e6`` makes the traces, measures, prints a table and
writes the samples as JSON; ``--show FILE`` prints the table of an earlier run again.
"""

from __future__ import annotations

import sys
from pathlib import Path

if __name__ == "__main__":
    # Run as a file, the folder of this file stands in place of the checkout.
    sys.path[0] = str(Path(__file__).resolve().parent.parent)
    from benchmarks.command import main

    sys.exit(main())
