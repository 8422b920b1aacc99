"""Two processes over gloo against one process with the whole batch."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import BertConfig, BertModel

from tercet.training.distributed import Ranks, gather, join_processes, mean_over_all
from tercet.training.gradient_sums import GradientSums

pytestmark = pytest.mark.slow

WORKER = Path(__file__).with_name("distributed_worker.py")
VALUES: dict[str, Any] = {
    "name": "two",
    "stage": "finetune",
    "base": {"name": "b", "licence": "MIT", "checkpoint": "minilm-m3"},
    "data": {
        "query_tokens": 8,
        "passage_tokens": 16,
        "sources": [{"path": "pairs.jsonl", "title": "P", "licence": "CC0 1.0"}],
    },
    "batches": {"groups": [{"tokens": 16, "batch": 2}], "negatives": 9, "sub_batch_tokens": 24},
    "losses": {"temperature": 0.1, "form": "revised", "sparse": 1.0},
    "optimization": {"steps": 1, "learning_rate": 0.1},
}
# All negatives fit into a batch, so both ways see the same passages. Pair n has n + 1 of its own, one that
# all have, and the positive of the next.
POSITIVES = [f"word{n} word{n + 4} word{n + 8}" + " word30" * n for n in range(4)]
PAIRS = [
    {
        "query": f"word{n} word{n + 4}",
        "pos": [POSITIVES[n]],
        "neg": [
            *(f"word{n} word{20 + k}" + " word31" * (n + k) for k in range(n + 1)),
            "word1 word2 word3",
            POSITIVES[(n + 1) % 4],
        ],
    }
    for n in range(4)
]


def values(batch: int, **batches: Any) -> dict[str, Any]:
    changed = deepcopy(VALUES)
    changed["batches"].update(batches, groups=[{"tokens": 16, "batch": batch}])
    return changed


# An odd number of passages, so that shares are not alike.
MANY = [
    {
        "query": f"word{n} word{(n + 3) % 40}",
        "pos": [" ".join(f"word{(n * k + k) % 40}" for k in range(1, 7))],
    }
    for n in range(39)
]


def shared_values() -> dict[str, Any]:
    changed = values(2)
    changed["data"]["sources"] = [
        {
            "path": "many.jsonl",
            "title": "M",
            "licence": "CC0 1.0",
            "development_pairs": 7,
            "development_passages": 13,
        }
    ]
    return changed


STAGES = ("mlm", "retromae", "condenser", "cocondenser")
DOCUMENTS = [" ".join(f"word{(n * 7 + k) % 40}" for k in range(5 + n)) for n in range(4)]


def pretraining_values(stage: str) -> dict[str, Any]:
    source = {"path": "documents.txt", "title": "D", "licence": "CC0 1.0", "format": "texts"}
    data = {"passage_tokens": 16, "sources": [source]}
    batches = {"groups": [{"tokens": 16, "batch": 2}], "sub_batch_tokens": 24}
    spans = {"span_tokens": 5, "span_weight": 0.5} if stage == "cocondenser" else {}
    changes = {"stage": stage, "data": data, "batches": batches, "pretraining": spans}
    return {**{key: value for key, value in VALUES.items() if key != "losses"}, **changes}


# The last has more tokens than a sub-batch on one process and fewer on the other.
CHANGES: list[dict[str, Any]] = [
    {"gradient_cache": False},
    {"gradient_cache": True},
    {"sub_batch_tokens": 80},
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, written_base: tuple[Path, str]) -> Path:
    """What both processes found, in `found-0.pt` and `found-1.pt`."""
    folder = tmp_path_factory.mktemp("two")
    shutil.copytree(written_base[0], folder / "base")
    (folder / "pairs.jsonl").write_text("".join(json.dumps(pair) + "\n" for pair in PAIRS))
    warmup = {**values(2, **CHANGES[-1]), "optimization": {**VALUES["optimization"], "head_warmup_steps": 1}}
    steps = [*(values(2, **change) for change in CHANGES), warmup]
    (folder / "values.json").write_text(json.dumps(steps))
    (folder / "shared.json").write_text(json.dumps(shared_values()))
    (folder / "many.jsonl").write_text("".join(json.dumps(pair) + "\n" for pair in MANY))
    (folder / "documents.txt").write_text("\n".join(DOCUMENTS))
    (folder / "pretraining.json").write_text(json.dumps([pretraining_values(stage) for stage in STAGES]))
    # Condenser needs an early and a late layer.
    config = BertConfig(
        vocab_size=45,
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=32,
        initializer_range=0.3,
    )
    torch.manual_seed(1)
    BertModel(config, add_pooling_layer=False).save_pretrained(folder / "base")
    root = Path(__file__).resolve().parents[2]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
    processes = [
        subprocess.Popen(
            [sys.executable, str(WORKER), str(rank), str(folder)],
            cwd=root,
            env=environment,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    for process in processes:
        _, errors = process.communicate(timeout=200)
        assert process.returncode == 0, errors
    return folder


@pytest.fixture
def found(folder: Path) -> list[dict[str, Any]]:
    return [torch.load(folder / f"found-{rank}.pt", weights_only=True) for rank in range(2)]


def worker_module() -> Any:
    """The worker's functions, for this process."""
    spec = importlib.util.spec_from_file_location("distributed_worker", WORKER)
    assert spec is not None
    assert spec.loader is not None
    worker = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(worker)
    return worker


@pytest.mark.parametrize("number", range(len(CHANGES)), ids=["whole", "cached", "either"])
def test_two_processes_equal_one_with_the_whole_batch(
    folder: Path, found: list[dict[str, Any]], number: int
) -> None:
    one = worker_module().gradients_of_a_step(values(4, **CHANGES[number]), folder, Ranks())
    first, second = (process["steps"][number] for process in found)
    assert set(first["gradients"]) == set(one["gradients"])
    for name, gradient in one["gradients"].items():
        torch.testing.assert_close(first["gradients"][name], gradient, rtol=1e-5, atol=1e-5)
        assert torch.equal(first["gradients"][name], second["gradients"][name])
    assert first["losses"].keys() == one["losses"].keys()
    for name, loss in one["losses"].items():
        assert first["losses"][name] == second["losses"][name]
        if name != "tokens":  # each process encodes what all pairs have
            assert float(first["losses"][name]) == pytest.approx(float(loss), abs=1e-5)


def test_processes_agree_on_caching_while_only_the_heads_train(found: list[dict[str, Any]]) -> None:
    first, second = (process["steps"][-1]["gradients"] for process in found)
    assert sorted(first) == sorted(second)
    assert all(name.startswith("heads.") for name in first)
    for name, gradient in first.items():
        assert torch.equal(gradient, second[name])


@pytest.mark.parametrize("stage", STAGES)
def test_two_processes_pre_train_one_model(folder: Path, found: list[dict[str, Any]], stage: str) -> None:
    first, second = (process["pretraining"][STAGES.index(stage)] for process in found)
    assert set(first["gradients"]) == set(second["gradients"])
    for name, gradient in first["gradients"].items():
        assert torch.equal(gradient, second["gradients"][name])
        assert torch.isfinite(gradient).all()
    for name, loss in first["losses"].items():
        assert float(loss) == float(second["losses"][name])
    # Gradients are summed, so each process takes them of its share of the mean.
    differentiated = float(first["differentiated"] + second["differentiated"])
    assert differentiated == pytest.approx(float(first["losses"]["loss"]), rel=1e-5)
    if stage == "cocondenser":  # its spans meet those of the other process
        assert float(first["losses"]["spans"]) > 0
        return
    alone = [
        worker_module().pretraining_of_a_step(pretraining_values(stage), folder, Ranks(rank, 2))
        for rank in range(2)
    ]
    for name, gradient in first["gradients"].items():
        expected = sum(process["gradients"][name] for process in alone)
        torch.testing.assert_close(gradient, expected, rtol=1e-5, atol=1e-6)
    for name, loss in first["losses"].items():
        expected = sum(float(process["losses"][name]) for process in alone) / 2
        assert float(loss) == pytest.approx(expected, abs=1e-5)


def test_spans_are_contrasted_with_those_of_all_processes(folder: Path, found: list[dict[str, Any]]) -> None:
    losses = found[0]["pretraining"][STAGES.index("cocondenser")]["losses"]
    # Seven other spans to choose from in place of the three that one process has.
    alone = worker_module().pretraining_of_a_step(pretraining_values("cocondenser"), folder, Ranks())
    assert float(losses["spans"]) > float(alone["losses"]["spans"]) > 0
    assert float(losses["loss"]) == pytest.approx(
        float(losses["late_mlm"] + losses["head_mlm"] + 0.5 * losses["spans"]), abs=1e-5
    )


def test_rows_of_unequal_sizes_come_to_all(found: list[dict[str, Any]]) -> None:
    rows = torch.tensor([[0.0, 1, 0], [2, 3, 0], [4, 5, 0], [10, 11, 12]])
    for process in found:
        gathered = process["gathered"]
        assert torch.equal(gathered["rows"], rows)
        mask = [[True, True, False], [True, True, False], [True, True, True]]
        assert gathered["mask"].tolist() == mask
        assert gathered["mask"].dtype == torch.bool
        assert gathered["flat"].tolist() == [0, 1, 1]
        assert gathered["cube"].tolist() == [[[1.5, 1.5], [0, 0]], [[1.5, 1.5], [1.5, 1.5]]]
        assert gathered["bytes"].tolist() == [[250] * 3, [251] * 3]


def test_a_gradient_is_summed_over_all_that_gathered_the_row(found: list[dict[str, Any]]) -> None:
    # The weights of the columns are 1, 2, 3; the processes weigh by 1 and by 2.
    assert found[0]["gathered"]["gradient"].tolist() == [[3.0, 6.0]] * 3
    assert found[1]["gathered"]["gradient"].tolist() == [[3.0, 6.0, 9.0]]


def test_gradients_are_summed_and_one_that_all_lack_stays_missing(found: list[dict[str, Any]]) -> None:
    for process in found:
        both, one, none = process["summed"]
        assert both.tolist() == [3.0, 6.0]
        assert one.tolist() == [5.0, 6.0]
        assert none is None
        assert process["shared"].tolist() == [0.0, 0.0]


def test_gradients_travel_in_buckets_and_are_those_summed_one_by_one(found: list[dict[str, Any]]) -> None:
    # One message tells which there are. Of 30 gradients each fifth, of 160 bytes, fills 200; one is left.
    messages = {1: 1 + 30, 200: 1 + 6, 25 * 1024**2: 1 + 1}
    for process in found:
        expected, by_size = process["summed_in_buckets"].values()
        assert {size: sent for size, (_, sent) in by_size.items()} == messages
        for gradients, _ in by_size.values():
            assert all(torch.equal(a, b) for a, b in zip(gradients, expected, strict=True))


def test_processes_share_evaluation_and_find_what_one_does(
    folder: Path, found: list[dict[str, Any]], tmp_path: Path
) -> None:
    one = worker_module().shared_work(shared_values(), alone_in(folder, tmp_path), Ranks())
    for process in found:
        work = process["work"]
        torch.testing.assert_close(work["scores"], one["scores"], rtol=0.0, atol=1e-5)
        assert work["figures"] == pytest.approx(one["figures"], abs=1e-6)
        # Queries meet every share of the pool.
        assert work["scored"] <= one["queries"] + one["pool"] // 2 + 1
    assert one["scored"] == one["queries"] + one["pool"]
    assert torch.equal(*(process["work"]["scores"] for process in found))


@pytest.mark.parametrize("side", ["dense", "sum"])
def test_processes_share_mining_and_find_what_one_does(
    folder: Path, found: list[dict[str, Any]], tmp_path: Path, side: str
) -> None:
    one = worker_module().shared_work(shared_values(), alone_in(folder, tmp_path), Ranks())
    assert len(one[side]["rows"]) > 100
    for process in found:
        work = process["work"]
        assert torch.equal(work[side]["offsets"], one[side]["offsets"])
        assert torch.equal(work[side]["rows"], one[side]["rows"])
        assert work[side]["texts"] <= one["mined_from"] // 2 + 1
        assert torch.equal(work["kept"], one["kept"])
    assert one[side]["texts"] == one["mined_from"]
    assert not list(folder.glob("mining-*"))


def alone_in(folder: Path, other: Path) -> Path:
    """What both processes read, in a folder without what they wrote."""
    shutil.copytree(folder / "base", other / "base")
    shutil.copy(folder / "many.jsonl", other)
    return other


def test_gradients_are_sent_while_the_last_backward_pass_runs(found: list[dict[str, Any]]) -> None:
    torch.manual_seed(5)
    layers = torch.nn.Sequential(*(torch.nn.Linear(4, 4) for _ in range(5)))
    for rank in range(2):
        for part in torch.randn(2, 6, 4, generator=torch.Generator().manual_seed(rank)):
            layers(part).square().sum().backward()
    for process in found:
        overlapping = process["overlapping"]
        assert overlapping["before"] == [0] * 5  # nothing is whole yet
        # A weight and a bias of each layer that is done, while the next one's pass begins.
        assert overlapping["during"] == [0, 2, 4, 6, 8]
        for gradient, parameter in zip(overlapping["gradients"], layers.parameters(), strict=True):
            torch.testing.assert_close(gradient, parameter.grad)


def test_one_process_has_nothing_to_gather(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", "1")
    ranks = join_processes("cpu")
    assert ranks == Ranks(0, 1)
    tensor = torch.ones(2, requires_grad=True)
    assert gather(tensor, ranks) is tensor
    parameter = torch.nn.Parameter(torch.ones(2))
    sums = GradientSums([parameter], ranks)
    sums.before_last_backward()
    sums.finish()
    assert parameter.grad is None
    assert mean_over_all({"loss": torch.tensor(2.0)}, ranks) == {"loss": torch.tensor(2.0)}
