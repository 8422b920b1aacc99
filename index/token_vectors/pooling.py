"""Token pooling: a text keeps one vector for each so many of its tokens.

The token vectors of a text are joined by Ward's criterion, those first whose joining adds least to the
squared distances from the means, until as many clusters are left; each is stored as its mean, scaled to
length 1 (Clavié et al. 2024, hierarchical pooling). A long text is pooled in runs of `RUN` tokens, so that
memory and time grow with its length alone.
"""

from __future__ import annotations

import numpy as np

from tercet.index.native.kernels import pool_tokens
from tercet.models.representations import TokenVectors, offsets_of

RUN = 512  # tokens whose distances are compared with each other


def pooled(vectors: TokenVectors, factor: int) -> TokenVectors:
    """Of every text the means of its clusters, one for `factor` tokens or a part of so many.

    vectors: of length 1, of a text float32[L, C], of which float32[⌈L / factor⌉, C] are left, and up to one
    more for each `RUN`; in the order of each cluster's first token.
    """
    if factor == 1:
        return vectors
    offsets = np.ascontiguousarray(vectors.offsets)
    lengths = np.diff(offsets)
    whole, rest = np.divmod(lengths, RUN)
    starts = offsets_of(whole * -(-RUN // factor) + -(-rest // factor))
    means = np.empty((int(starts[-1]), vectors.vectors.shape[1]), np.float32)
    pool_tokens(np.ascontiguousarray(vectors.vectors, np.float32), offsets, starts, factor, RUN, means)
    return TokenVectors(means, starts)
