"""Texts of a chunk → dictionary codes, without making a Python object per row.

A trace repeats its texts. The bytes are fetched in words of eight and hashed; rows whose hash
falls in the same slot of a table are compared, word by word, with the first row of that slot.
Equal ones share its code; the others go round again with another slot. So the hash only ever
proposes: no two texts are taken for one unless all their bytes agree. What is left, one row per
distinct text of the chunk, is looked up in a Python dictionary.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from kernelscope.parsers.btree_pages import Bytes, Positions, Unsupported
from kernelscope.parsers.btree_records import fetch
from kernelscope.parsers.columns import Texts

Words = npt.NDArray[np.uint64]

_LONG = 256  # bytes; longer texts are rare and go through the dictionary one by one
_ROUNDS = 64
_ODD = np.uint64(0x9E3779B97F4A7C15)  # 2^64 / golden ratio: spreads bits when multiplied by
# Keeps the first n bytes of a word as it lies in memory, whichever way the machine reads it.
_FIRST_BYTES = np.array([[0xFF] * kept + [0] * (8 - kept) for kept in range(9)], np.uint8).view(
    np.uint64
)[:, 0]


def encode(data: Bytes, at: Positions, length: Positions, texts: Texts) -> npt.NDArray[np.int32]:
    """Return the code of each text, adding new ones to `texts` as they first appear.

    Parameters
    ----------
    data : ndarray of uint8
        The chunk.
    at, length : ndarray of int, shape (n,)
        Where each text begins, and its bytes.
    texts : Texts
        The column's texts so far.
    """
    first = np.arange(len(at))
    short = np.flatnonzero(length <= _LONG)
    if len(short):
        first[short] = short[_first_alike(_words(data, at[short], length[short]))]
    own = np.flatnonzero(first == np.arange(len(at)))
    view = data.data
    spans = zip(at[own].tolist(), (at[own] + length[own]).tolist(), strict=True)
    codes = np.empty(len(at), np.int32)
    codes[own] = [texts[bytes(view[start:stop])] for start, stop in spans]
    return codes[first]


def _words(data: Bytes, at: Positions, length: Positions) -> list[Words]:
    """Return the texts' lengths, then their bytes in words, padded with zeros."""
    words = [length.astype(np.uint64)]
    for start in range(0, int(length.max()), 8):
        rows: Any = slice(None) if length.min() > start else np.flatnonzero(length > start)
        part = fetch(data, at[rows] + start, 8).view(np.uint64)[:, 0]
        part &= _FIRST_BYTES[np.minimum(length[rows] - start, 8)]
        word = np.zeros(len(at), np.uint64)
        word[rows] = part
        words.append(word)
    return words


def _first_alike(words: list[Words]) -> Positions:
    """Return, for each row, the first row whose words are all the same."""
    mixed = words[0] * _ODD
    for word in words[1:]:
        mixed = (mixed ^ word) * _ODD
        mixed ^= mixed >> np.uint64(32)
    rows = len(mixed)
    bits = max(4, (2 * rows).bit_length())
    slots = np.empty(1 << bits, np.intp)
    first = np.empty(rows, np.intp)
    left = np.arange(rows)
    for _ in range(_ROUNDS):
        slot = (mixed[left] >> np.uint64(64 - bits)).astype(np.intp)
        slots[slot[::-1]] = left[::-1]  # of several rows the last one written stays: the first
        candidate = slots[slot]
        same = np.logical_and.reduce([word[left] == word[candidate] for word in words])
        first[left[same]] = candidate[same]
        left = left[~same]
        if not len(left):
            return first
        mixed[left] = (mixed[left] ^ (mixed[left] >> np.uint64(29))) * _ODD
    raise Unsupported("texts that hash alike")
