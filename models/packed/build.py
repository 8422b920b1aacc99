"""Makes a model's packed passes: on a GPU with the body compiled, and recorded, on a CPU as they are."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, fx

from tercet.models.packed.attention import install
from tercet.models.packed.bodies import has_kernel, positions_of
from tercet.models.packed.fused import fuse_gelu
from tercet.models.packed.model import PackedBody, PackedModel, States
from tercet.models.packed.passes import MOST_RECORDINGS, PackedPasses
from tercet.models.packed.recorded import CudaRecorder, Recordings
from tercet.models.packed.transfers import Transfers
from tercet.models.tokenizer import Tokenizer

log = logging.getLogger("tercet")

Compiler = Callable[[fx.GraphModule, list[Any]], Callable[..., Any]]


def packed_passes(model: Any, tokenizer: Tokenizer, budget_tokens: int) -> PackedPasses | None:
    """Packed passes of a model with `body` and `heads` on its device; None where it has to be padded.

    The body then takes its attention from `tercet.models.packed.attention`, in padded passes too.
    """
    body, heads = model.body, model.heads
    weights = next(body.parameters())
    device, on_gpu = weights.device, weights.device.type == "cuda"
    positions = positions_of(body)
    if positions is None:
        log.info("a body of %s takes padded passes alone", body.config.model_type)
        return None
    if on_gpu and not has_kernel(body, weights.dtype, torch.cuda.get_device_capability(device)):
        log.info("%s on this GPU takes padded passes alone; bfloat16 has packed ones", weights.dtype)
        return None
    install(body)
    special = torch.zeros(body.get_input_embeddings().num_embeddings, dtype=torch.bool, device=device)
    special[[id for id in tokenizer.special_ids if id < len(special)]] = True
    if not on_gpu:
        packed = PackedModel(PackedBody(body), heads, positions, special, torch.float32).eval()
        return PackedPasses(packed, tokenizer, Transfers(device), budget_tokens)
    torch.set_float32_matmul_precision("high")  # of the heads, whose inputs have fewer digits than TF32
    packed = PackedModel(compiled(PackedBody(body)), heads, positions, special, torch.float16).eval()
    return PackedPasses(
        packed,
        tokenizer,
        Transfers(device),
        budget_tokens,
        recordings=Recordings(CudaRecorder(device), MOST_RECORDINGS),
        shared_shapes=True,
    )


def compiled(body: PackedBody, compiler: Compiler = torch._inductor.compile) -> States:
    """The body, compiled at its first use for all shapes; as it is where that fails, and the log says so."""

    def fused(graph: fx.GraphModule, inputs: list[Any]) -> Callable[..., Any]:
        fuse_gelu(graph)
        return compiler(graph, inputs)

    fast = torch.compile(body, dynamic=True, fullgraph=True, backend=fused)
    failed = False

    def states(token_ids: Tensor, positions: Tensor, offsets: Tensor, longest: int) -> Tensor:
        nonlocal failed
        if not failed:
            try:
                result: Tensor = fast(token_ids, positions, offsets, longest)
                return result
            except torch._dynamo.exc.TorchDynamoException as error:
                failed = True
                reason = str(error).strip().partition("\n")[0]
                log.warning("passes are not compiled, which makes them slower: %s", reason)
        hidden: Tensor = body(token_ids, positions, offsets, longest)
        return hidden

    return states
