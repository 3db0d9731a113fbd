"""Fuzz the reader with atheris: damage real exports, compare both ways of reading with sqlite3.

By hand, ten minutes, from the project's folder::

    pip install atheris
    python tests/fuzz/fuzz_btree.py -max_total_time=600 -rss_limit_mb=4096

atheris itself takes some 0.3 MB more with each run, hence the limit.
The files are those of the corpus that are small (tests/corpus.py says where it is looked for);
without a corpus, the made ones in ``traces``, which is said. An input names one of them and a list
of changes to it (where, and to what), so that most inputs still get past the file header. What a
changed file holds must be what sqlite3 says, or be refused; and the whole of it must be read as a
trace, or be refused with a reason. A file of which neither is so ends the run and is kept as
``fuzz-NAME`` in the working folder.
"""

from __future__ import annotations

import contextlib
import random
import sys
import tempfile
from pathlib import Path

import atheris

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

with atheris.instrument_imports(include=["kernelscope.parsers"]):
    import kernelscope as ks
    from kernelscope.errors import KernelscopeError
    from tests.corpus import nsys_traces, nvprof_traces
    from tests.parsers.damage import check_damaged

_LARGEST = 2 * 2**20
_CHANGES = 32
_SEEDS = 64
_LONGEST_SEED = 60  # a dozen changes: with many more, hardly a file is still a database
_FILE_HEADER = 100
_PAGE_HEAD = 60  # a page's header, and the first places of its cells


def samples() -> list[Path]:
    """Return the files to damage: the small ones of the corpus, else the made ones."""
    real = [p for p in (*nsys_traces(), *nvprof_traces()) if p.stat().st_size <= _LARGEST]
    made = sorted((ROOT / "traces").glob("*.sqlite"))
    what = "small files of the corpus" if real else "made samples: no corpus of real traces here"
    sys.stderr.write(f"Damaging {len(real or made)} {what}.\n")
    return real or made


def damaged(good: bytes, changes: atheris.FuzzedDataProvider) -> bytearray:
    """Return a copy of a file with the changes that an input asks for.

    A place is any of the file, or of the heads of its pages, or of the file's own head; what
    stands there becomes another byte, or the file ends there.
    """
    data = bytearray(good)
    page = int.from_bytes(good[16:18], "big")
    page = 65536 if page == 1 else page
    for _ in range(_CHANGES):
        if not changes.remaining_bytes():
            break
        kind = changes.ConsumeIntInRange(0, 255)
        if kind < 96:
            place = changes.ConsumeIntInRange(0, len(data) - 1)
        elif kind < 250:
            place = changes.ConsumeIntInRange(0, (len(data) - 1) // page) * page
            place += changes.ConsumeIntInRange(0, _PAGE_HEAD - 1)
        else:
            place = changes.ConsumeIntInRange(0, _FILE_HEADER - 1)
        if kind == 0:
            del data[max(place, _FILE_HEADER) :]
        elif place < len(data):
            data[place] = changes.ConsumeIntInRange(0, 255)
    return data


def check_trace(path: Path) -> None:
    """Read a file as a trace: what is no trace is refused, in words."""
    with contextlib.suppress(KernelscopeError):
        ks.read(path)


def seeds(folder: Path) -> Path:
    """Write inputs to begin with: from none, libFuzzer tries those of a byte or two for minutes."""
    rng = random.Random(0)
    folder.mkdir()
    for number in range(_SEEDS):
        (folder / str(number)).write_bytes(rng.randbytes(rng.randint(6, _LONGEST_SEED)))
    return folder


def main() -> None:
    """Run until told to stop by one of libFuzzer's options."""
    good = [(path.name, path.read_bytes()) for path in samples()]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "damaged.sqlite"
        begin = seeds(Path(folder) / "seeds")

        def once(raw: bytes) -> None:
            changes = atheris.FuzzedDataProvider(raw)
            name, whole = good[changes.ConsumeIntInRange(0, len(good) - 1)]
            path.write_bytes(damaged(whole, changes))
            try:
                check_damaged(path)
                check_trace(path)
            except BaseException:
                Path(f"fuzz-{name}").write_bytes(path.read_bytes())
                raise

        named = any(not word.startswith("-") for word in sys.argv[1:])  # an input to run again
        atheris.Setup(sys.argv if named else [*sys.argv, str(begin)], once)
        atheris.Fuzz()


if __name__ == "__main__":
    main()
