"""``python -m kernelscope``: the command line where no script is installed."""

import sys

from kernelscope.cli import main

sys.exit(main())
