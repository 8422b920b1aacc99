"""Settings of a checkpoint, and where it comes from."""

import json
from pathlib import Path

import pytest

from tercet.models.checkpoint import (
    EncodingSettings,
    checkpoint_name,
    hidden_size,
    position_limit,
    read_settings,
    resolve_adapter,
    resolve_checkpoint,
)
from tercet.models.errors import CheckpointError


def folder_with(tmp_path: Path, **files: dict[str, object]) -> Path:
    for name, values in files.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(values))
    return tmp_path


def test_settings_survive_json() -> None:
    settings = EncodingSettings(
        pooling="mean",
        max_length=128,
        colbert_dimension=64,
        query_instruction="query: ",
        mcls_every=32,
        lexical="idf",
        lower_capitals=True,
        matryoshka_dimensions=(256, 64),
    )
    assert EncodingSettings.from_json(json.loads(json.dumps(settings.to_json()))) == settings


def test_an_unknown_key_fails() -> None:
    with pytest.raises(CheckpointError, match=r"unknown keys \['poolling'\]; it may have \['pooling'"):
        EncodingSettings.from_json({"poolling": "mean"})


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("pooling", "max"),
        ("pooling", ["cls"]),
        ("max_length", 2),
        ("max_length", "512"),
        ("max_length", None),
        ("max_length", True),
        ("mcls_every", 1),
        ("colbert_dimension", 0),
        ("query_instruction", None),
        ("lexical", "bm25"),
        ("lexical", None),
        ("lower_capitals", 1),
        ("matryoshka_dimensions", 64),
        ("matryoshka_dimensions", []),
        ("matryoshka_dimensions", [64, 0]),
        ("matryoshka_dimensions", [64.0]),
    ],
)
def test_values_out_of_range(key: str, value: object) -> None:
    with pytest.raises(CheckpointError, match=f"{key} is"):
        EncodingSettings.from_json({key: value})


@pytest.mark.parametrize(
    ("config", "limit"),
    [
        ({"model_type": "xlm-roberta", "max_position_embeddings": 8194, "pad_token_id": 1}, 8192),
        ({"model_type": "roberta", "max_position_embeddings": 514}, 512),
        ({"model_type": "bert", "max_position_embeddings": 512, "pad_token_id": 0}, 512),
        ({"model_type": "bert"}, None),
    ],
)
def test_positions_of_the_model(config: dict[str, object], limit: int | None) -> None:
    assert position_limit(config) == limit


def test_defaults_without_tercet_json(tmp_path: Path) -> None:
    config = {"model_type": "xlm-roberta", "max_position_embeddings": 8194, "pad_token_id": 1}
    folder = folder_with(tmp_path, config=config, tokenizer_config={"model_max_length": 8192})
    assert read_settings(folder) == EncodingSettings(pooling="cls", max_length=8192)


def test_the_shorter_of_model_and_tokenizer(tmp_path: Path) -> None:
    config = {"model_type": "bert", "max_position_embeddings": 512}
    folder = folder_with(tmp_path, config=config, tokenizer_config={"model_max_length": 256})
    assert read_settings(folder).max_length == 256


def test_a_tokenizer_without_a_limit_of_its_own(tmp_path: Path) -> None:
    config = {"model_type": "bert", "max_position_embeddings": 512}
    folder = folder_with(tmp_path, config=config, tokenizer_config={"model_max_length": 10**30})
    assert read_settings(folder).max_length == 512


def test_tercet_json_past_the_positions(tmp_path: Path) -> None:
    config = {"model_type": "bert", "max_position_embeddings": 512}
    folder = folder_with(tmp_path, config=config, tercet={"max_length": 1024})
    with pytest.raises(CheckpointError, match="max_length is 1024, but the model has positions for 512"):
        read_settings(folder)


def test_a_setting_out_of_range_is_told_with_its_folder(tmp_path: Path) -> None:
    folder = folder_with(tmp_path, config={"model_type": "bert"}, tokenizer_config={"model_max_length": 2})
    with pytest.raises(CheckpointError, match=f"{folder}: max_length is 2; it must be a whole number"):
        read_settings(folder)


@pytest.mark.parametrize("content", ["", "[]", "{", "nothing"])
def test_a_damaged_config(tmp_path: Path, content: str) -> None:
    (tmp_path / "config.json").write_text(content)
    with pytest.raises(CheckpointError, match=r"config\.json"):
        read_settings(tmp_path)


@pytest.mark.parametrize("width", [None, "x", 0, True])
def test_a_config_without_a_width(tmp_path: Path, width: object) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"hidden_size": width}))
    with pytest.raises(CheckpointError, match=r"config\.json: hidden_size is"):
        hidden_size(tmp_path)


def test_a_missing_config(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"config\.json is missing"):
        read_settings(tmp_path)


def test_a_folder_resolves_to_itself(tmp_path: Path) -> None:
    assert resolve_checkpoint(str(tmp_path)) == tmp_path
    assert checkpoint_name(str(tmp_path)) == tmp_path.name
    assert checkpoint_name("BAAI/bge-m3") == "BAAI/bge-m3"


def test_the_embedded_checkpoint_goes_by_its_name(embedded_checkpoint: Path) -> None:
    assert resolve_checkpoint("minilm-m3") == embedded_checkpoint
    for local in ("minilm-m3", str(embedded_checkpoint)):
        with pytest.raises(CheckpointError, match="--revision goes with a hub id"):
            resolve_checkpoint(local, "v1")


@pytest.mark.parametrize("name", ["nothing", "/no/such/folder", "./no/folder", "a/b/c", "../x", ""])
def test_neither_folder_nor_hub_id(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    expected = r"neither one that comes with Tercet \(minilm-m3 or multi-m3\), nor a folder, nor a hub id"
    with pytest.raises(CheckpointError, match=expected):
        resolve_checkpoint(name)


def test_a_hub_that_cannot_be_reached(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    import huggingface_hub.constants

    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path))
    with pytest.raises(CheckpointError, match="'nobody/nothing' at revision v1 could not be fetched"):
        resolve_checkpoint("nobody/nothing", "v1")
    with pytest.raises(CheckpointError, match="'nobody/nothing' at revision v1 could not be fetched"):
        resolve_checkpoint("nobody/nothing@v1")
    with pytest.raises(CheckpointError, match="names revision 'v1', and 'v2' is given"):
        resolve_checkpoint("nobody/nothing@v1", "v2")


def test_an_adapter_of_the_hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """From a cache as the hub's client leaves it, without a network."""
    import huggingface_hub.constants

    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path))
    commit = "a" * 40
    repository = tmp_path / "models--somebody--law"
    snapshot = repository / "snapshots" / commit
    snapshot.mkdir(parents=True)
    (snapshot / "adapter_config.json").touch()
    (repository / "refs").mkdir()
    (repository / "refs" / "v1").write_text(commit)
    for name, revision in (("somebody/law@v1", None), ("somebody/law", "v1")):
        assert resolve_adapter(name, revision) == snapshot
    assert resolve_adapter(str(snapshot)) == snapshot
    with pytest.raises(
        CheckpointError,
        match=r"adapter 'somebody/law' at revision v2 could .*`hf download somebody/law --revision v2`",
    ):
        resolve_adapter("somebody/law@v2")
    with pytest.raises(
        CheckpointError, match="adapter 'somebody/law@v1' names revision 'v1', and 'v2' is given"
    ):
        resolve_adapter("somebody/law@v1", "v2")
    with pytest.raises(CheckpointError, match="adapter 'law' is neither a folder, nor a hub id"):
        resolve_adapter("law")


@pytest.mark.parametrize("exported", [True, False])
def test_graphs_are_fetched_only_beside_a_record_of_our_export(
    exported: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A hub whose repository holds a foreign graph, and with `exported` also our record of it."""
    import huggingface_hub

    repository = ["config.json", "onnx/model.onnx", *(["onnx/export.json"] if exported else [])]

    def snapshot_download(_name: str, *, revision: str | None, allow_patterns: list[str]) -> str:
        assert revision == "v1"
        for file in huggingface_hub.utils.filter_repo_objects(repository, allow_patterns=allow_patterns):
            (tmp_path / file).parent.mkdir(exist_ok=True)
            (tmp_path / file).touch()
        return str(tmp_path)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", snapshot_download)
    assert resolve_checkpoint("somebody/something", "v1") == tmp_path
    assert (tmp_path / "config.json").exists()
    assert (tmp_path / "onnx" / "model.onnx").exists() == exported


def test_sizes_to_cut_to_are_found_where_they_are_declared(tmp_path: Path) -> None:
    """As jina-embeddings-v3 has them in `config.json`; our own file goes before it."""
    folder = folder_with(tmp_path, config={"matryoshka_dimensions": [32, 64]})
    assert read_settings(folder).matryoshka_dimensions == (32, 64)
    assert "matryoshka_dimensions" not in EncodingSettings().to_json()
    folder = folder_with(
        tmp_path, config={"matryoshka_dimensions": [32, 64]}, tercet={"matryoshka_dimensions": [16]}
    )
    assert read_settings(folder).matryoshka_dimensions == (16,)
