"""`tercet adapters` and `--adapter`, on a tiny real checkpoint."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file

from tercet.cli.encoders import adapted_encoder
from tercet.models import encoder
from tercet.models.adapters.blocks import BodyShape
from tercet.models.adapters.compound_settings import HypernetworkSettings
from tercet.models.adapters.files import read_adapter, write_adapter
from tercet.models.adapters.record import Adapter, AdapterBase
from tercet.models.adapters.settings import LoraSettings
from tercet.models.checkpoint import read_json
from tercet.models.loader import load_encoder
from tercet.service.encoding import service
from tercet.service.settings.reading import load_settings

pytest.importorskip("torch", reason="adapters act in torch, or are exported from it: install tercet[torch]")
pytest.importorskip("onnxscript", reason="the export needs onnxscript: install tercet[torch]")

Run = Callable[..., Any]


@pytest.fixture(scope="session")
def checkpoint(repository: Path) -> Path:
    """The tiny XLM-RoBERTa of the models' tests."""
    return repository / "tests" / "models" / "golden" / "checkpoint"


@pytest.fixture(scope="session")
def base(checkpoint: Path) -> AdapterBase:
    fingerprint = load_encoder(str(checkpoint), "torch", device="cpu").info.fingerprint
    return AdapterBase("tiny", fingerprint, BodyShape.of_config(read_json(checkpoint / "config.json")))


@pytest.fixture
def adapters(data: Path, base: AdapterBase) -> Path:
    """Two adapters in the folder that commands use by default."""
    for seed, name in enumerate(("law", "tea")):
        random, settings = np.random.default_rng(seed), LoraSettings(rank=2)
        arrays = {
            key: random.normal(0, 0.5, shape).astype(np.float32)
            for key, shape in settings.shapes(base.body).items()
        }
        write_adapter(data / "adapters" / name, Adapter(settings, base, arrays, language="ko"))
    return data / "adapters"


@pytest.fixture
def torch_tercet(tercet: Run, checkpoint: Path) -> Run:
    """Runs a command with the tiny checkpoint on torch."""
    return lambda *arguments: tercet(
        *arguments, TERCET_CHECKPOINT=str(checkpoint), TERCET_ENGINE="torch", TERCET_DEVICE="cpu"
    )


@pytest.mark.slow
def test_list(torch_tercet: Run, adapters: Path) -> None:
    assert "law" in torch_tercet("adapters", "list").stdout
    (adapters / "tea" / "adapter.safetensors").unlink()
    listed = json.loads(torch_tercet("adapters", "list", "--json").stdout)["adapters"]
    assert [(each["name"], each["problem"] is None) for each in listed] == [("law", True), ("tea", False)]
    assert "No adapters in" in torch_tercet("adapters", "list", "--adapters", "elsewhere").stdout


@pytest.mark.slow
def test_merge_stack_and_generate(torch_tercet: Run, adapters: Path, base: AdapterBase) -> None:
    folders = [str(adapters / "law"), str(adapters / "tea")]
    done = torch_tercet("adapters", "merge", *folders, "--output", str(adapters / "both"))
    assert (done.returncode, "kind lora" in done.stderr) == (0, True)
    options = ["--method", "arithmetic", "--weights", "1,-1", "--rank", "2", "--description", "law, not tea"]
    done = torch_tercet("adapters", "merge", *folders, *options, "--output", str(adapters / "law-tea"))
    assert done.returncode == 0, done.stderr
    assert read_adapter(adapters / "law-tea").description == "law, not tea"
    assert read_adapter(adapters / "both").settings == LoraSettings(rank=4, alpha=4.0)
    done = torch_tercet("adapters", "stack", *folders, "--output", str(adapters / "law-then-tea"))
    assert done.returncode == 0, done.stderr
    settings = HypernetworkSettings(("ko",), ("law",), width=2)
    arrays = {name: np.ones(shape, np.float32) for name, shape in settings.shapes(base.body).items()}
    write_adapter(adapters / "world", Adapter(settings, base, arrays))
    output = ["--output", str(adapters / "ko-law")]
    done = torch_tercet("adapters", "generate", str(adapters / "world"), "ko", "law", *output)
    assert done.returncode == 0, done.stderr
    listed = json.loads(torch_tercet("adapters", "list", "--json").stdout)["adapters"]
    kinds = {each["name"]: each["kind"] for each in listed}
    names = ("law-then-tea", "ko-law", "world+ko+law")
    assert [kinds[name] for name in names] == ["stack", "bottleneck", "bottleneck"]
    assert all(each["fingerprint"] for each in listed)


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["merge", "A", "--output", "data/adapters/x"], 1, "takes two or more"),
        (["merge", "A", "B", "--output", "data/adapters/X"], 1, "does not match"),
        (["merge", "A", "C", "--output", "data/adapters/x"], 1, "is neither a folder, nor a hub id"),
        (["merge", "A", "B", "--weights", "1;2", "--output", "x"], 2, "is not numbers"),
        (["merge", "A", "B", "--method", "weighted", "--output", "x"], 1, "as many finite weights"),
        (["stack", "A", "B", "--output", "elsewhere/x"], 1, "is not beside"),
        (["stack", "A", "--output", "data/adapters/x"], 1, "two adapters or more"),
        (["stack", "A", "B", "--output", "data/adapters/law"], 2, "is one of the folders given"),
        (["merge", "A", "B", "--output", "data/adapters/tea"], 2, "is one of the folders given"),
    ],
)
def test_what_cannot_be_made(
    tercet: Run, adapters: Path, arguments: list[str], code: int, message: str
) -> None:
    folders = {"A": str(adapters / "law"), "B": str(adapters / "tea"), "C": str(adapters / "none")}
    done = tercet("adapters", *(folders.get(word, word) for word in arguments))
    assert (done.returncode, message in done.stderr) == (code, True), done.stderr
    assert sorted(path.name for path in adapters.iterdir()) == ["law", "tea"]


@pytest.mark.slow
def test_an_adapter_from_texts_to_hits(
    tercet: Run, torch_tercet: Run, adapters: Path, source: Path, checkpoint: Path, tmp_path: Path
) -> None:
    dense = {}
    for name in (None, "law"):
        chosen = [] if name is None else ["--adapter", name]
        output = tmp_path / f"{name}.safetensors"
        done = torch_tercet("embed", "--input", str(source), "--output", str(output), *chosen)
        assert done.returncode == 0, done.stderr
        dense[name] = load_file(output)["dense"]
    assert abs(dense["law"] - dense[None]).max() > 0.01

    done = torch_tercet("collection", "build", str(source), "--collection", "cases", "--adapter", "law")
    assert done.returncode == 0, done.stderr
    inspected = json.loads(torch_tercet("collection", "show", "cases", "--json").stdout)
    assert inspected["adapter"] == "law"
    assert torch_tercet("search", "cases", "tea").returncode == 0
    refused = torch_tercet("collection", "build", str(source), "--collection", "cases", "--adapter", "tea")
    assert (refused.returncode, "goes with adapter 'law'" in refused.stderr) == (1, True)
    refused = torch_tercet("embed", "--input", str(source), "--output", "x.safetensors", "--adapter", "no")
    assert (refused.returncode, "no adapter 'no'; there are law, tea" in refused.stderr) == (1, True)

    exported = tmp_path / "exported"
    assert tercet("export", str(checkpoint), "--output", str(exported)).returncode == 0
    done = tercet("export", str(checkpoint), "--adapter", str(adapters / "law"), "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["fingerprint"] == inspected["fingerprint"]
    output = tmp_path / "onnx.safetensors"
    done = tercet(
        *("embed", "--input", str(source), "--output", str(output), "--adapter", "law"),
        TERCET_CHECKPOINT=str(exported),
    )
    assert done.returncode == 0, done.stderr
    np.testing.assert_allclose(load_file(output)["dense"], dense["law"], atol=1e-5)
    assert tercet("search", "cases", "tea", TERCET_CHECKPOINT=str(exported)).returncode == 0


@pytest.mark.parametrize(
    ("trained_on", "flags", "opened"),
    [
        ("multi-m3", {}, "multi-m3"),
        ("multi-m3", {"checkpoint": "minilm-m3"}, None),  # a flag says what to open
        ("minilm-m3", {}, None),  # as in the settings
        ("trained-here", {}, None),  # a name that does not say where it is
    ],
)
def test_an_evaluation_takes_the_checkpoint_of_its_adapter(
    adapters: Path,
    monkeypatch: pytest.MonkeyPatch,
    trained_on: str,
    flags: dict[str, str],
    opened: str | None,
) -> None:
    law = read_adapter(adapters / "law")
    write_adapter(adapters / "law", replace(law, base=replace(law.base, name=trained_on)))
    monkeypatch.setenv("TERCET_CHECKPOINT", "minilm-m3")
    monkeypatch.setattr(service, "local_encoder", lambda settings, checkpoint: checkpoint)
    monkeypatch.setattr(encoder, "with_adapter", lambda checkpoint, adapter: checkpoint)
    settings = load_settings({"adapters": adapters, **flags})
    assert adapted_encoder(settings, "law") == opened


def test_export_takes_an_output_or_an_adapter(tercet: Run, checkpoint: Path) -> None:
    for options in ([], ["--output", "x", "--adapter", "y"]):
        done = tercet("export", str(checkpoint), *options)
        assert (done.returncode, "give one of both" in done.stderr) == (2, True)


@pytest.mark.slow
def test_routes_from_texts_to_hits(torch_tercet: Run, adapters: Path, source: Path, tmp_path: Path) -> None:
    law, tea = tmp_path / "law.txt", tmp_path / "tea.jsonl"
    law.write_text("".join(f"the court of case {number}\n" for number in range(10)))
    tea.write_text("".join(json.dumps({"text": f"hot water {number}"}) + "\n" for number in range(10)))
    for kind in ("centroid", "gate", "soft"):
        files = [f"law={law}", f"={tea}"]
        done = torch_tercet("adapters", "route", f"by-{kind}", *files, "--kind", kind, "--json")
        assert done.returncode == 0, done.stderr
        report = json.loads(done.stdout)
        assert (report["learned"], report["held_out"]) == (16, 4)
        assert [each["adapter"] for each in report["accuracies"]] == ["law", None]
    assert "mean" in torch_tercet("adapters", "route", "by-gate", *files).stdout
    # An adapter does not take the place of a router.
    folders = [str(adapters / "law"), str(adapters / "tea")]
    done = torch_tercet("adapters", "merge", *folders, "--output", str(adapters / "by-gate"))
    assert (done.returncode, "holds a router" in done.stderr) == (1, True)
    done = torch_tercet("adapters", "route", "by-language", "ko=tea", "--kind", "fixed", "--default", "law")
    assert done.returncode == 0, done.stderr
    listed = {
        each["name"]: each
        for each in json.loads(torch_tercet("adapters", "list", "--json").stdout)["adapters"]
    }
    assert list(listed) == ["law", "tea", "by-centroid", "by-gate", "by-language", "by-soft"]
    assert all(each["fingerprint"] for each in listed.values())
    shown = torch_tercet("adapters", "list").stdout
    assert "among law, the base" in " ".join(shown.split())
    tags = ["language:ko=tea", "language:de=", "domain:law=law"]
    done = torch_tercet("adapters", "route", "by-both", *tags, "--kind", "fixed")
    assert done.returncode == 0, done.stderr
    listed.update(
        (each["name"], each)
        for each in json.loads(torch_tercet("adapters", "list", "--json").stdout)["adapters"]
    )
    shown = " ".join(torch_tercet("adapters", "list").stdout.split())
    assert "by language: ko tea, de the base, any other the base; on top of it by domain: law law" in shown
    pair = "tea+law"
    for name, kept in (("by-soft", "by-soft"), ("by-language:ko", "tea"), ("by-both:ko:law", pair)):
        collection = kept.replace("+", "-")
        done = torch_tercet("collection", "build", str(source), "--collection", collection, "--adapter", name)
        assert done.returncode == 0, done.stderr
        inspected = json.loads(torch_tercet("collection", "show", collection, "--json").stdout)
        assert (inspected["adapter"], inspected["fingerprint"]) == (kept, listed[kept]["fingerprint"])
        assert torch_tercet("search", collection, "tea").returncode == 0


@pytest.mark.slow
def test_to_peft_and_back(
    torch_tercet: Run, adapters: Path, base: AdapterBase, checkpoint: Path, tmp_path: Path
) -> None:
    done = torch_tercet("adapters", "export", str(adapters / "law"), "--output", str(tmp_path / "law"))
    assert (done.returncode, (tmp_path / "law" / "adapter_config.json").is_file()) == (0, True), done.stderr
    arguments = ["adapters", "import", str(checkpoint), str(tmp_path / "law")]
    done = torch_tercet(*arguments, "--output", str(adapters / "again"))
    # The base was recorded under another name than the folder's.
    assert (done.returncode, "base_model_name_or_path" in done.stderr) == (1, True), done.stderr
    record = tmp_path / "law" / "adapter_config.json"
    record.write_text(record.read_text().replace('"tiny"', '"checkpoint"'))
    done = torch_tercet(*arguments, "--output", str(adapters / "again"))
    assert done.returncode == 0, done.stderr
    again, law = read_adapter(adapters / "again"), read_adapter(adapters / "law")
    assert (again.digest, again.base.fingerprint) == (law.digest, base.fingerprint)


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["law"], 2, "is not a new ADAPTER=FILE"),
        (["law=a.txt", "law=b.txt"], 2, "is not a new ADAPTER=FILE"),
        (["law=a.txt"], 1, "among two or more"),
        (["law=a.txt", "none=b.txt"], 1, "adapter.json is missing"),
        (["law=a.txt", "tea=b.txt"], 1, "cannot be read"),
        (
            ["law=a.txt", "tea=b.txt", "--kind", "soft", "--top", "1"],
            1,
            "top is 1; it must be a number from 2",
        ),
        (["ko=none", "--kind", "fixed"], 1, "adapter.json is missing"),
        (["language:ko=law", "domain:a=tea", "length:b=", "--kind", "fixed"], 2, "tags of 3 kinds; give two"),
        (["ko=law", "language:ko=tea", "--kind", "fixed"], 2, "the tag 'ko' is given twice"),
        (["language:ko=law", "length:b=tea", "--kind", "fixed"], 1, "by is 'length'"),
    ],
)
def test_routers_that_cannot_be_made(
    torch_tercet: Run, adapters: Path, arguments: list[str], code: int, message: str
) -> None:
    done = torch_tercet("adapters", "route", "by-domain", *arguments)
    assert (done.returncode, message in " ".join(done.stderr.split())) == (code, True), done.stderr
    assert not (adapters / "by-domain").exists()


def test_a_router_is_not_learned_from_vectors_of_another_base(
    torch_tercet: Run, adapters: Path, tmp_path: Path
) -> None:
    record = adapters / "law" / "adapter.json"
    values = json.loads(record.read_text())
    values["base"]["fingerprint"] = "0" * 64
    record.write_text(json.dumps(values))
    text = tmp_path / "text.txt"
    text.write_text("one\ntwo\n")
    done = torch_tercet("adapters", "route", "by-domain", f"law={text}", f"={text}")
    assert (done.returncode, "law belongs to base" in " ".join(done.stderr.split())) == (1, True), done.stderr
    assert not (adapters / "by-domain").exists()
