"""One of two processes over gloo: python distributed_worker.py RANK FOLDER; writes what it finds to FOLDER.

The tests start it in processes of their own, since a process can be only one of a group.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

from tercet.models.checkpoint import EncodingSettings
from tercet.models.encoder_model import EncoderModel, load_body
from tercet.models.heads import Heads
from tercet.models.tokenizer import Tokenizer
from tercet.training.data.pair_table import read_tables
from tercet.training.data.text_table import read_text_table
from tercet.training.distributed import Ranks, gather, mean_over_all, share_weights
from tercet.training.gradient_sums import GradientSums
from tercet.training.m3.development import all_scores, development_figures
from tercet.training.m3.finetune import Finetune
from tercet.training.m3.miner import Miner
from tercet.training.m3.mining import mine_negatives
from tercet.training.m3.text_encoder import TextEncoder
from tercet.training.passes import prepare
from tercet.training.pretraining.condenser import Condenser
from tercet.training.pretraining.masked_lm import MaskedLm
from tercet.training.pretraining.mlm_head import load_mlm_head
from tercet.training.pretraining.retromae import RetroMae
from tercet.training.pretraining.stages import CoCondenserPretraining, MaskedPretraining, RetroMaePretraining
from tercet.training.settings.objective import MiningSettings
from tercet.training.settings.reading import settings_from
from tercet.training.settings.run import CoCondenserRun, CondenserRun, FinetuneRun, MlmRun, RetroMaeRun


def gradients_of_a_step(values: dict[str, Any], folder: Path, ranks: Ranks) -> dict[str, Any]:
    """Mean loss and summed gradients of the first step over the pairs in `folder`, without dropout."""
    settings = settings_from(values)
    assert isinstance(settings, FinetuneRun)
    encoding = EncodingSettings(pooling="mean", max_length=32)
    base = folder / "base"
    torch.manual_seed(3)
    model = EncoderModel(load_body(base), Heads(16, 8, encoding)).eval()
    with torch.no_grad():
        model.heads.sparse.bias.fill_(1.0)
    prepare(model.body)
    sums = GradientSums(model.parameters(), ranks, 2000)
    if settings.optimization.head_warmup_steps:
        model.body.requires_grad_(False)
    tokenizer = Tokenizer.load(base, encoding)
    work = folder / f"work-{ranks.size}-{ranks.rank}"
    work.mkdir(exist_ok=True)
    tables = read_tables(settings.data, folder, work, tokenizer, 1, settings.seed)
    encoder = TextEncoder(model, tokenizer, settings.batches.sub_batch_tokens, "float32", "cpu")
    stage = Finetune(encoder, tables, settings, work, ranks)
    report = stage.accumulate(0, lambda loss: loss, sums.before_last_backward)
    sums.finish()
    means = mean_over_all({**report.losses, "tokens": torch.tensor(float(report.tokens))}, ranks)
    gradients = {name: p.grad for name, p in model.named_parameters() if p.grad is not None}
    return {"losses": means, "gradients": gradients}


def pretraining_of_a_step(values: dict[str, Any], folder: Path, ranks: Ranks) -> dict[str, Any]:
    """Losses and gradients of this process alone at the first step of pre-training, without dropout.

    differentiated: the sum of all that it takes gradients of.
    """
    settings = settings_from(values)
    assert isinstance(settings, MlmRun | RetroMaeRun | CondenserRun | CoCondenserRun)
    encoding = EncodingSettings(pooling="mean", max_length=32)
    work = folder / f"texts-{ranks.size}-{ranks.rank}"
    work.mkdir(exist_ok=True)
    tokenizer = Tokenizer.load(folder / "base", encoding)
    stores = read_text_table(settings.data, folder, work, tokenizer, settings.seed)
    torch.manual_seed(3)
    body = load_body(folder / "base")
    head, _ = load_mlm_head(body.config, None)
    stage: RetroMaePretraining | MaskedPretraining
    model: torch.nn.Module
    if isinstance(settings, RetroMaeRun):
        model = RetroMae(body, head, encoding).eval()
        stage = RetroMaePretraining(model, tokenizer, stores, settings, "cpu", ranks)
    elif isinstance(settings, MlmRun):
        model = MaskedLm(body, head, encoding).eval()
        stage = MaskedPretraining(model, tokenizer, stores, settings, "cpu", ranks)
    else:
        condenser = model = Condenser(body, head, encoding, early_layers=1).eval()
        if isinstance(settings, CoCondenserRun):
            stage = CoCondenserPretraining(condenser, tokenizer, stores, settings, "cpu", ranks)
        else:
            stage = MaskedPretraining(condenser, tokenizer, stores, settings, "cpu", ranks)
    differentiated: list[torch.Tensor] = []

    def scaled(loss: torch.Tensor) -> torch.Tensor:
        differentiated.append(loss.detach())
        return loss

    sums = GradientSums(model.parameters(), ranks if dist.is_initialized() else Ranks(), 2000)
    report = stage.accumulate(0, scaled, sums.before_last_backward)
    gradients = {name: p.grad for name, p in model.named_parameters() if p.grad is not None}
    total = torch.stack(differentiated).sum()
    return {
        "losses": report.losses,
        "gradients": gradients,
        "model": model,
        "differentiated": total,
        "sums": sums,
    }


def summed_pretraining(values: dict[str, Any], folder: Path, ranks: Ranks) -> dict[str, Any]:
    """The same after all processes have added up their gradients."""
    found = pretraining_of_a_step(values, folder, ranks)
    model, sums = found.pop("model"), found.pop("sums")
    sums.finish()
    gradients = {name: p.grad for name, p in model.named_parameters() if p.grad is not None}
    losses = mean_over_all(found["losses"], ranks)
    return {"losses": losses, "gradients": gradients, "differentiated": found["differentiated"]}


def shared_work(values: dict[str, Any], folder: Path, ranks: Ranks) -> dict[str, Any]:
    """Scores and figures of the development set, and mined negatives, of which each process has a share.

    texts: how many of each kind went through the body of this process.
    """
    settings = settings_from(values)
    assert isinstance(settings, FinetuneRun)
    encoding = EncodingSettings(pooling="mean", max_length=32)
    tokenizer = Tokenizer.load(folder / "base", encoding)
    torch.manual_seed(3)
    model = EncoderModel(load_body(folder / "base"), Heads(16, 8, encoding)).eval()
    with torch.no_grad():
        model.heads.sparse.bias.fill_(0.5)
    work = folder / f"shared-{ranks.size}-{ranks.rank}"
    work.mkdir(exist_ok=True)
    (table,) = read_tables(settings.data, folder, work, tokenizer, 1, settings.seed)
    encoder = TextEncoder(model, tokenizer, 64, "float32", "cpu")
    texts = 0

    def counted(module: torch.nn.Module, given: tuple[Any, ...], named: dict[str, torch.Tensor]) -> None:
        nonlocal texts
        texts += len(named["input_ids"])

    model.body.register_forward_pre_hook(counted, with_kwargs=True)
    found: dict[str, Any] = {"scores": torch.from_numpy(all_scores(encoder, table, ranks=ranks).copy())}
    found["scored"], texts = texts, 0
    found["figures"] = development_figures(encoder, table, ranks=ranks)
    mining = MiningSettings(first=2, last=12, ceiling=100.0)
    for side in ("dense", "sum"):
        texts = 0
        mined = mine_negatives(encoder, table, mining, side, folder / f"parts-{side}", ranks)
        rows, offsets = (torch.from_numpy(array) for array in (mined.rows, mined.offsets))
        found[side] = {"rows": rows, "offsets": offsets, "texts": texts}
    found["queries"], found["pool"] = len(table.development), len(table.pool)
    found["mined_from"] = len(table.training_passages()) + len(table.training)
    miner = Miner(encoder, [table], mining, "dense", folder, ranks, 1)
    found["kept"] = torch.from_numpy(miner.negatives(0)[0].rows)
    return found


def gathered(ranks: Ranks) -> dict[str, Any]:
    """Tensors of other sizes in each process, and the gradient of a sum that weighs the gathered ones."""
    own = torch.arange(6.0).reshape(3, 2) if ranks.rank == 0 else 10 + torch.arange(3.0).reshape(1, 3)
    own.requires_grad_()
    everything = gather(own, ranks)
    # Process r weighs what it has of all by r + 1, so each value gets 1 + 2 of its column's number.
    weights = torch.arange(1.0, everything.shape[1] + 1)
    ((ranks.rank + 1) * everything * weights).sum().backward()
    mask = torch.ones(2 - ranks.rank, 2 + ranks.rank, dtype=torch.bool)
    flat, cube = torch.full((1 + ranks.rank,), ranks.rank), torch.full((1, 1 + ranks.rank, 2), 1.5)
    return {
        "rows": everything.detach(),
        "gradient": own.grad,
        "mask": gather(mask, ranks),
        "flat": gather(flat, ranks),
        "cube": gather(cube, ranks),
        "bytes": gather(torch.full((1, 3), 250 + ranks.rank, dtype=torch.uint8), ranks),
    }


def summed(ranks: Ranks) -> list[torch.Tensor | None]:
    """Gradients that both, one and none of the processes have."""
    both, one, none = (torch.nn.Parameter(torch.zeros(2)) for _ in range(3))
    both.grad = torch.tensor([1.0, 2.0]) * (ranks.rank + 1)
    if ranks.rank == 1:
        one.grad = torch.tensor([5.0, 6.0])
    GradientSums([both, one, none], ranks).finish()
    return [both.grad, one.grad, none.grad]


def summed_in_buckets(ranks: Ranks) -> dict[str, Any]:
    """Gradients of many parameters, summed one by one and in buckets, and the messages that these took."""
    random = torch.Generator().manual_seed(ranks.rank)
    shapes: list[tuple[int, ...]] = [(3, 5), (7,), (), (2, 2, 2), (40,), (1,)] * 5
    given = [torch.randn(shape, generator=random) for shape in shapes]
    expected = [gradient.clone() for gradient in given]
    for gradient in expected:
        dist.all_reduce(gradient)
    found = {}
    for bucket_bytes in (1, 200, 25 * 1024**2):
        parameters = [torch.nn.Parameter(torch.zeros(shape)) for shape in shapes]
        for parameter, gradient in zip(parameters, given, strict=True):
            parameter.grad = gradient.clone()
        messages, all_reduce = 0, dist.all_reduce

        def counted(tensor: torch.Tensor, **options: Any) -> Any:
            nonlocal messages
            messages += 1
            return all_reduce(tensor, **options)  # noqa: B023  # called in this round

        dist.all_reduce = counted
        GradientSums(parameters, ranks, bucket_bytes).finish()
        dist.all_reduce = all_reduce
        found[bucket_bytes] = ([parameter.grad for parameter in parameters], messages)
    return {"expected": expected, "found": found}


def sent_while_backward_runs(ranks: Ranks) -> dict[str, Any]:
    """Which layers' gradients were sent when each layer's backward pass began, first to last in that order,
    and the sums over two backward passes that add up.
    """
    torch.manual_seed(5)
    layers = torch.nn.Sequential(*(torch.nn.Linear(4, 4) for _ in range(5)))
    sums = GradientSums(layers.parameters(), ranks, 1)
    sent, all_reduce, seen = 0, dist.all_reduce, []

    def counted(tensor: torch.Tensor, **options: Any) -> Any:
        nonlocal sent
        sent += 1
        return all_reduce(tensor, **options)

    for layer in layers:
        layer.register_full_backward_pre_hook(lambda *_: seen.append(sent))
    inputs = torch.randn(2, 6, 4, generator=torch.Generator().manual_seed(ranks.rank)).requires_grad_()
    dist.all_reduce = counted
    layers(inputs[0]).square().sum().backward()
    before = list(seen)
    seen.clear()
    loss = layers(inputs[1]).square().sum()
    sums.before_last_backward()
    loss.backward()
    during = list(seen)
    sums.finish()
    dist.all_reduce = all_reduce
    return {"before": before, "during": during, "gradients": [p.grad for p in layers.parameters()]}


def main() -> None:
    """Joins the other process through a file in the folder."""
    torch.set_num_threads(1)
    rank, folder = int(sys.argv[1]), Path(sys.argv[2])
    dist.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=2)
    ranks = Ranks(rank, 2)
    weight = torch.full((2,), float(rank), requires_grad=True)
    share_weights([weight], ranks)
    found = {
        "gathered": gathered(ranks),
        "summed": summed(ranks),
        "summed_in_buckets": summed_in_buckets(ranks),
        "shared": weight.detach(),
        "work": shared_work(json.loads((folder / "shared.json").read_text()), folder, ranks),
        "overlapping": sent_while_backward_runs(ranks),
        "steps": [
            gradients_of_a_step(values, folder, ranks)
            for values in json.loads((folder / "values.json").read_text())
        ],
        "pretraining": [
            summed_pretraining(values, folder, ranks)
            for values in json.loads((folder / "pretraining.json").read_text())
        ],
    }
    torch.save(found, folder / f"found-{rank}.pt")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
