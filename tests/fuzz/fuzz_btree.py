"""Fuzz the SQLite reader with atheris: damage a small export, compare with plain sqlite3.

By hand, ten minutes::

    pip install atheris
    python tests/fuzz/fuzz_btree.py -max_total_time=600

Any file on which the reader crashes, or answers other than sqlite3, ends the run and is kept.
The input is a list of changes to a good file (where, and to what), so that most inputs still get
past the file header.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import atheris

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

with atheris.instrument_imports(include=["kernelscope.parsers"]):
    from tests.parsers.damage import check_damaged
    from tests.parsers.tables import make_trace

_CHANGES = 32


def main() -> None:
    """Run until told to stop by one of libFuzzer's options."""
    with tempfile.TemporaryDirectory() as folder:
        good = make_trace(Path(folder) / "good.sqlite", 150, page_size=512).read_bytes()
        path = Path(folder) / "damaged.sqlite"

        def once(raw: bytes) -> None:
            changes = atheris.FuzzedDataProvider(raw)
            data = bytearray(good)
            for _ in range(_CHANGES):
                if not changes.remaining_bytes():
                    break
                data[changes.ConsumeIntInRange(0, len(data) - 1)] = changes.ConsumeIntInRange(
                    0, 255
                )
            path.write_bytes(data)
            check_damaged(path)

        atheris.Setup(sys.argv, once)
        atheris.Fuzz()


if __name__ == "__main__":
    main()
