"""All three outputs of FlagEmbedding for two texts, by the checkpoint in a folder. Prints their shapes."""

import json
import sys

from FlagEmbedding import BGEM3FlagModel

model = BGEM3FlagModel(sys.argv[1], use_fp16=False, devices="cpu")
found = model.encode(
    ["a wing in a flow", "hot water"], return_dense=True, return_sparse=True, return_colbert_vecs=True
)
print(
    json.dumps(
        {
            "dense": found["dense_vecs"].shape,
            "sparse": [len(weights) for weights in found["lexical_weights"]],
            "colbert": [vectors.shape for vectors in found["colbert_vecs"]],
        }
    )
)
