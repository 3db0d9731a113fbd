"""Does the name of a range or of an operating-system call say that data is being fetched?

A closed list. What a name leaves open (``data copy in 3``, ``load_state_dict``, ``get_item``)
is not called data loading.
"""

from __future__ import annotations

import re
from itertools import pairwise

from kernelscope.metrics.library_domains import is_data_pipeline

_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")

ALONE = frozenset({"data", "load", "loading", "loader", "next", "fetch", "prefetch", "dataset"})
"""Names that say it as the only word of a range's name, numbers left out: ``next``, ``load 3``."""

SAYING = frozenset(
    {"dataloader", "dataloaders", "dataloading", "dataiter", "datafetch", "datafetcher"}
    | {"prefetcher", "dataprefetcher", "datapipe", "datamodule", "getbatch", "nextbatch"}
)
"""Words that say it wherever they stand."""

FETCHING = frozenset(
    {"load", "loading", "loader", "loads", "fetch", "fetching", "fetcher", "prefetch"}
    | {"prefetching", "read", "reading", "reader", "get", "next", "wait", "waiting", "iterator"}
)
"""Words that say it right before or behind one of `FETCHED`: ``load_batch``, ``data wait``."""

FETCHED = frozenset(
    {"data", "batch", "batches", "minibatch", "samples", "input", "inputs", "dataset", "images"}
)

FILLERS = frozenset({"the", "a", "for", "of", "from", "train", "training", "validation", "host"})
"""Words that do not part the two: ``wait for data``, ``load training batch``."""

NOT_DATA = frozenset(
    {"checkpoint", "ckpt", "state", "dict", "weight", "weights", "param", "params", "parameter"}
    | {"parameters", "model", "module", "library", "kernel", "kernels", "shared", "smem", "tile"}
    | {"copy", "grad", "grads", "gradient", "gradients", "norm", "parallel"}
)
"""Words beside which it is something else: ``load model weights``, ``batch norm iter``."""

ITERATORS = re.compile(
    # PyTorch: enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__
    r"enumerate\(DataLoader\)|DataLoader\w*\.(__next__|_next_data)|\w*Iter\w*\.__next__"
    # DALI's own ranges: [DALI][Loader] ReadOne
    r"|\[DALI\]"
)
"""Beginnings of the names that libraries give their iterators over data."""

OS_CALLS = frozenset(
    {"read", "readv", "pread", "pread64", "preadv", "preadv64", "preadv2"}
    | {"fread", "fread_unlocked", "fgets", "fgets_unlocked", "fgetc", "getline", "getdelim"}
    | {"recv", "recvfrom", "recvmsg", "recvmmsg", "poll", "ppoll", "select", "pselect"}
)
"""Calls in which a thread takes in, or waits for, what a file, a pipe or a socket delivers.

Waiting for another thread (``pthread_cond_wait``, ``sem_wait``, ``futex``) and event loops
(``epoll_wait``) leave open what for.
"""


def range_loads_data(name: str, domain: str = "") -> bool:
    """Return whether a range is named for the fetching of data.

    Parameters
    ----------
    name : str
        The range's name.
    domain : str
        Its NVTX domain: a data pipeline's own ranges (DALI) are all of that kind.
    """
    if is_data_pipeline(domain) or ITERATORS.match(name):
        return True
    words = [word.lower() for word in _WORDS.findall(name)]
    said = set(words)
    if said & NOT_DATA:
        return False
    if said & SAYING or (len(words) == 1 and said <= ALONE):
        return True
    telling = [word for word in words if word not in FILLERS]
    return any({*pair} & FETCHED and {*pair} & FETCHING for pair in pairwise(telling))


def os_call_loads_data(name: str) -> bool:
    """Return whether an operating-system call takes data in, or waits for it to arrive."""
    return name in OS_CALLS
