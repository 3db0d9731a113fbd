"""``python -m kernelscope``: the command line where no script is on the path."""

import sys

from kernelscope.cli import main

if __name__ == "__main__":
    sys.exit(main())
