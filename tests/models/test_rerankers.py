"""Re-rankers in a folder: what their logits are, and what is refused by name."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from transformers import BertConfig, BertModel

from tercet.models.errors import RerankerNotServedError, RerankerUnusableError, no_such
from tercet.models.rerankers import load_reranker, reranker_names
from tests.tiny.cross_encoders import logit, write_reranker
from tests.tiny.word_pieces import PIECES, word_piece_json

QUERY = "hello, wing!"
TEXTS = ["air heat wave", "", "world", "a wave of heat 별 " * 30]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    write_reranker(tmp_path / "judge")
    return tmp_path


def test_a_folder_is_listed(root: Path) -> None:
    for name in ("Judge", "no name", ".hidden"):
        (root / name).mkdir()
        (root / name / "config.json").write_text("{}")
    (root / "empty").mkdir()
    (root / "file").write_text("")
    (root / "second").symlink_to(root / "judge")
    assert reranker_names(root) == ("judge", "second")
    assert reranker_names(root / "nowhere") == ()


def test_a_folder_of_the_file_system_that_nobody_may_read_is_passed_over(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "lost+found").mkdir()
    is_file = Path.is_file

    def refused(path: Path) -> bool:
        if "lost+found" in path.parts:
            raise PermissionError(13, "Permission denied", str(path))
        return is_file(path)

    monkeypatch.setattr(Path, "is_file", refused)
    assert reranker_names(root) == ("judge",)


def test_logits_are_those_of_the_libraries_alone_and_together(root: Path) -> None:
    judge = load_reranker(root, "judge", "cpu", 1)
    pairs = judge.pairs_of(QUERY, TEXTS)
    assert pairs.truncated.tolist() == [False, False, False, True]
    expected = [logit(root / "judge", QUERY, text) for text in TEXTS]
    assert len(set(expected)) == len(TEXTS)
    for pass_tokens in (1, 80, 2048):
        assert judge.scores(pairs, pass_tokens) == pytest.approx(expected, abs=1e-5)
    for text, alone in zip(TEXTS, expected, strict=True):
        assert judge.scores(judge.pairs_of(QUERY, [text]), 2048)[0] == pytest.approx(alone, abs=1e-5)


def test_a_long_query_leaves_half_of_the_pair_to_the_passage(root: Path) -> None:
    judge = load_reranker(root, "judge", "cpu", 1)
    pairs = judge.pairs_of("wave " * 100, ["heat " * 100, "heat"])
    assert pairs.lengths.tolist() == [64, 34]
    assert pairs.second_starts is not None
    assert pairs.second_starts.tolist() == [32, 32]


def test_a_pair_is_no_longer_than_512_tokens(root: Path) -> None:
    write_reranker(root / "long", positions=600)
    assert load_reranker(root, "long", "cpu", 1).pairs_of("wave", ["heat " * 900]).lengths.tolist() == [512]


def test_a_folder_that_is_no_cross_encoder_is_named(root: Path) -> None:
    body = root / "body"
    body.mkdir()
    (body / "tokenizer.json").write_bytes(word_piece_json())
    config = BertConfig(
        vocab_size=len(PIECES),
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=32,
    )
    BertModel(config).save_pretrained(body)
    with pytest.raises(RerankerUnusableError, match=r"'body' cannot be used: .* lack .* such as classifier"):
        load_reranker(root, "body", "cpu", 1)
    (root / "judge" / "model.safetensors").write_bytes(b"nothing")
    with pytest.raises(RerankerUnusableError, match="'judge' cannot be used"):
        load_reranker(root, "judge", "cpu", 1)


def test_torch_that_is_missing_is_named(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tercet.models.cross_encoder", None)
    with pytest.raises(RerankerNotServedError, match=r"need torch and transformers .*\[torch\]"):
        load_reranker(root, "judge", "cpu", 1)


def test_an_unknown_name_lists_those_that_there_are() -> None:
    assert no_such("re-ranker", "a", ()) == "no re-ranker 'a'; the folder of re-rankers has none"
    many = [f"r{number}" for number in range(21)]
    assert no_such("re-ranker", "a", many).endswith("r18, r19, …")
