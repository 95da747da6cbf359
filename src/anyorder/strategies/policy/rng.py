"""The only random stream of the policy: Philox4x32-10, a counter-based generator.

Nothing is drawn "next": every number is a function of what it is for. Engines that follow this page
draw the same numbers, whatever the number of threads, the batch or the device.

    key     = the 64-bit seed of the run, as (low, high) words
    counter = (block, row, generation, purpose + 256 * epoch)

A *row* of words is what one candidate (or, for `INIT`, one variable) needs. Word w of a row is lane
w % 4 of block w // 4. The words of a row are:

| purpose   | row       | generation          | word w of the row                               |
| --------- | --------- | ------------------- | ----------------------------------------------- |
| `INIT`    | variable  | restarts so far     | parameter w of that variable's network          |
|           | 0         |                     | parameter w of a shared network                 |
| `ORDER_G` | candidate | policy's generation | sort key of variable w in the generation order, |
|           |           |                     | or the noise on its score in a learned order    |
| `VALUE`   | candidate | policy's generation | the draw of variable w; epoch: Gibbs sweep      |
| `DROP_G`  | candidate | policy's generation | w = i * 4 * ceil(n / 4) + j: may i see j?       |
| `ORDER_T` | candidate | policy's generation | as `ORDER_G`, for training, one row an epoch    |
| `DROP_T`  | candidate | policy's generation | as `DROP_G`, for training, one row an epoch     |

A critic is initialised like the policy, with 2^31 added to the restarts. "candidate" is the k-th
one drawn from this generation's policy; in training, its place in the batch.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

INIT, ORDER_G, VALUE, DROP_G, ORDER_T, DROP_T = range(6)

UIntArray = npt.NDArray[np.uint32]

_MULTIPLIERS = np.array([0xD2511F53, 0xCD9E8D57], np.uint64)
_BUMPS = np.arange(10, dtype=np.uint64)[:, None] * np.array([0x9E3779B9, 0xBB67AE85], np.uint64)
_LOW, _SHIFT = np.uint64(0xFFFFFFFF), np.uint64(32)


def philox(counter: npt.ArrayLike, key: tuple[int, int]) -> UIntArray:
    """Return Philox4x32-10 of counters `(..., 4)` under a key of two words: `(..., 4)` words.

    J. Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC11.
    """
    words = np.asarray(counter, np.uint64)
    even, odd = words[..., 0::2], words[..., 1::2]
    for round_key in (np.array(key, np.uint64) + _BUMPS) & _LOW:
        products = (even * _MULTIPLIERS)[..., ::-1]
        even, odd = (products >> _SHIFT) ^ odd ^ round_key, products & _LOW
    result = np.empty(words.shape, np.uint32)
    result[..., 0::2], result[..., 1::2] = even, odd
    return result


def split_seed(seed: int) -> tuple[int, int]:
    """Return the Philox key of a run: the low and the high word of its 64-bit seed."""
    return seed & 0xFFFFFFFF, seed >> 32


def words(
    seed: int,
    purpose: int,
    generation: int,
    row: int,
    count: int,
    *,
    epoch: int = 0,
    first_block: int = 0,
) -> UIntArray:
    """Return `count` words of one row, from block `first_block` on."""
    blocks = -(-count // 4)
    counter = np.empty((blocks, 4), np.uint64)
    counter[:, 0] = np.arange(first_block, first_block + blocks)
    counter[:, 1:] = row, generation, purpose + 256 * epoch
    return philox(counter, split_seed(seed)).reshape(-1)[:count]


def words_of_rows(
    seed: int,
    purpose: int,
    generations: npt.ArrayLike,
    rows: npt.ArrayLike,
    count: int,
    *,
    epoch: int = 0,
) -> UIntArray:
    """Return `count` words of each of several rows, `(rows, count)`, faster than row by row."""
    blocks = -(-count // 4)
    counter = np.empty((np.size(rows), blocks, 4), np.uint64)
    counter[..., 0] = np.arange(blocks)
    counter[..., 1] = np.reshape(rows, (-1, 1))
    counter[..., 2] = np.reshape(generations, (-1, 1))
    counter[..., 3] = purpose + 256 * epoch
    return philox(counter, split_seed(seed)).reshape(len(counter), 4 * blocks)[:, :count]


def uniform(words: UIntArray) -> npt.NDArray[np.float64]:
    """Return words as numbers in [0, 1): their upper 24 bits, which float32 holds exactly."""
    return np.asarray(words >> np.uint32(8), np.float64) * 2.0**-24


def drop_threshold(p: float) -> int:
    """Return the number below which a word hides an input, with probability `p`."""
    return round(p * 2.0**32)
