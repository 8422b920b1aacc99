"""`tercet collection`: building, looking, verifying, and being interrupted."""

import json
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

Run = Callable[..., subprocess.CompletedProcess[str]]
Start = Callable[..., subprocess.Popen[str]]


def collections(data: Path) -> list[str]:
    folder = data / "collections"
    return sorted(path.name for path in folder.glob("*/")) if folder.is_dir() else []


def long_source(folder: Path) -> Path:
    """More than a machine encodes while a test waits; the first documents are mostly blanks, and quick."""
    path = folder / "long.jsonl"
    quick, slow = " " * 600, "Water turns to steam and drives the engine of the train. " * 12
    with path.open("w", encoding="utf-8") as file:
        for number in range(20_000):
            text = f"{number} {quick if number < 400 else slow}"
            file.write(json.dumps({"id": f"d{number}", "text": text}) + "\n")
    return path


def started_writing(process: subprocess.Popen[str]) -> None:
    """Waits until a window of documents, about 160 of them, has been written; nothing is published."""
    assert process.stdout is not None
    for line in process.stdout:
        if json.loads(line)["documents_done"] > 250:
            return


def test_build_reports_what_it_did(tercet: Run, source: Path, data: Path) -> None:
    done = tercet("collection", "build", str(source), "--collection", "small", "--dense-kind", "flat")
    assert done.returncode == 0, done.stderr
    assert "small, snapshot 000001" in done.stdout
    assert "documents/s" in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert "indexing" in done.stderr  # plain lines where standard error is no terminal
    assert "\x1b" not in done.stdout + done.stderr
    assert collections(data) == ["small"]


def test_inspect_and_verify_need_no_encoder(tercet: Run, built: Path) -> None:
    missing = {"TERCET_CHECKPOINT": "no/such/folder"}
    found = json.loads(tercet("collection", "show", "small", "--json", **missing).stdout)
    assert (found["documents"], found["snapshot"], found["fields"]) == (4, "000001", {"year": "integer"})
    assert found["lexical"] == "idf"  # as the checkpoint recommends
    assert found["bytes"]["total"] > 0
    assert (found["dense_index"]["kind"], found["dense_index"]["vectors"]) == ("flat", {"flat": 4})
    shown = tercet("collection", "show", "small", **missing).stdout
    assert "000001" in shown
    assert found["fingerprint"] in shown  # whole, not folded at the width of a terminal
    sound = tercet("collection", "verify", "small", **missing)
    assert (sound.returncode, sound.stdout) == (0, "Collection 'small' is sound.\n")


def test_lexical_weights_may_stay_as_they_are(tercet: Run, source: Path) -> None:
    done = tercet("collection", "build", str(source), "--collection", "plain", "--lexical", "plain")
    assert done.returncode == 0, done.stderr
    assert json.loads(tercet("collection", "show", "plain", "--json").stdout)["lexical"] == "plain"
    answer = json.loads(tercet("search", "plain", "hot tea", "--json").stdout)
    assert "terms" not in answer["query"]
    done = tercet("collection", "build", str(source), "--collection", "plain", "--lexical", "idf")
    assert done.returncode == 1
    assert "exists with lexical plain, and is asked for with lexical idf" in done.stderr


def test_bm25_is_a_fourth_column(tercet: Run, source: Path) -> None:
    done = tercet(
        "collection", "build", str(source), "--collection", "words", "--bm25", "--bm25-language", "german"
    )
    assert done.returncode == 0, done.stderr
    assert "a search weighs BM25 only where it is asked to: --weights 1,1,1,1" in done.stderr
    described = json.loads(tercet("collection", "show", "words", "--json").stdout)
    assert (described["bm25"], described["bm25_language"]) == (True, "german")
    assert described["bytes"]["bm25"] > 0
    answer = json.loads(tercet("search", "words", "hot tea", "--weights", "0,0,0,1", "--json").stdout)
    assert answer["hits"][0]["score"] == answer["hits"][0]["scores"]["bm25"] > 0
    assert "bm25" in tercet("search", "words", "hot tea").stdout
    for options, complaint in (
        (["--bm25-language", "german"], "goes with --bm25"),
        (["--bm25", "--bm25-language", "klingon"], "is not one of none, arabic"),
    ):
        done = tercet("collection", "build", str(source), "--collection", "new", *options)
        assert done.returncode == 2
        assert complaint in " ".join(done.stderr.split())
    done = tercet("collection", "build", str(source), "--collection", "words")
    assert done.returncode == 0  # a rebuild keeps it
    assert tercet("collection", "verify", "words").returncode == 0


def test_tokens_that_are_alike_may_share_a_vector(tercet: Run, source: Path) -> None:
    def vectors(*options: str) -> int:
        name = f"n{len(options)}"
        assert tercet("collection", "build", str(source), "--collection", name, *options).returncode == 0
        inspected = json.loads(tercet("collection", "show", name, "--json").stdout)
        assert inspected["token_pooling"] == (2 if "--token-pooling" in options else 1)
        assert inspected["token_codec"] == (options[1] if options else "int8")
        counted: int = inspected["token_vectors"]
        return counted

    each = vectors()
    shared = vectors("--token-codec", "sign", "--token-pooling", "2")
    assert 0.5 * each <= shared <= 0.7 * each  # half of each text's, the last one alone


def test_long_documents_in_windows(tercet: Run, source: Path, data: Path) -> None:
    text = "Trains run on rails. " * 40 + "Honey is made by bees."
    source.write_text(json.dumps({"id": "long", "text": text}) + '\n{"id": "short", "text": "Tea."}')
    options = ["--window-tokens", "64", "--window-overlap", "8"]
    done = tercet("collection", "build", str(source), "--collection", "long", *options)
    assert done.returncode == 0, done.stderr
    assert [line.split() for line in done.stdout.splitlines() if "windows" in line] == [["windows", "5"]]
    assert "truncated" not in done.stdout
    found = json.loads(tercet("collection", "show", "long", "--json").stdout)
    assert (found["documents"], found["windows"]) == (2, 5)
    assert found["window"] == {"tokens": 64, "overlap": 8}
    assert found["bytes"]["windows"] > 0
    lines = tercet("collection", "show", "long").stdout.splitlines()
    assert [" ".join(line.split()) for line in lines if line.startswith("window ")] == [
        "window 64 tokens, overlap 8"
    ]
    assert tercet("collection", "verify", "long").returncode == 0
    hit = json.loads(tercet("search", "long", "honey", "--json").stdout)["hits"][0]
    assert hit["window"]["index"] == 3
    assert text[hit["window"]["start"] : hit["window"]["end"]].endswith("Honey is made by bees.")
    assert "…on rails. Trains run" in tercet("search", "long", "honey").stdout
    done = tercet("collection", "build", str(source), "--collection", "long", "--window-tokens", "32")
    assert done.returncode == 1
    assert (
        "exists with windows of 64 tokens, overlap 8, and is asked for with windows of 32 tokens"
        in done.stderr
    )


def test_windows_out_of_range_are_wrong_usage(tercet: Run, source: Path, data: Path) -> None:
    build = ["collection", "build", str(source), "--collection", "x"]
    for options, part in (
        (["--window-tokens", "7"], "use an integer from 8"),
        (["--window-tokens", "16", "--window-overlap", "13"], "use an integer from 0 to 12"),
        (["--window-overlap", "13"], "give --window-tokens too"),
    ):
        done = tercet(*build, *options)
        assert done.returncode == 2
        assert part in " ".join(done.stderr.replace("│", " ").split())
    done = tercet(*build, "--window-tokens", "1000")
    assert (done.returncode, collections(data)) == (1, [])
    assert "this encoder takes at most 512" in done.stderr


def damage(data: Path) -> Path:
    """Flips a bit of the largest file of a segment of `small`, which is returned."""
    segment = next((data / "collections" / "small" / "segments").iterdir())
    victim = max(segment.iterdir(), key=lambda path: path.stat().st_size)
    content = bytearray(victim.read_bytes())
    content[-1] ^= 1
    victim.write_bytes(content)
    return victim


def test_verify_names_the_damaged_file(tercet: Run, built: Path) -> None:
    victim = damage(built)
    done = tercet("collection", "verify", "small")
    assert done.returncode == 1
    assert victim.name in done.stderr
    done = tercet("collection", "verify", "small", "--json")
    assert done.returncode == 1
    assert victim.name in json.loads(done.stdout)["problems"][0]


def test_a_copy_is_trusted_without_being_read(tercet: Run, built: Path) -> None:
    collections = built / "collections"
    shutil.copytree(collections / "small", collections / "kept")
    shutil.rmtree(collections / "small")
    (collections / "kept").rename(collections / "small")
    victim = damage(built)
    done = tercet("search", "small", "tea")
    assert done.returncode == 1
    assert victim.name in done.stderr
    done = tercet("collection", "verify", "small", "--trust", "--json")
    assert (done.returncode, json.loads(done.stdout)) == (0, {"name": "small", "trusted": True})
    assert tercet("search", "small", "tea").returncode == 0


def test_bad_lines_stop_the_build_or_are_listed(tercet: Run, source: Path, data: Path) -> None:
    with source.open("a", encoding="utf-8") as file:
        file.write('\n{"id": "tea", "text": "again"}\n{"id": 5}\n')
    done = tercet("collection", "build", str(source), "--collection", "x")
    assert done.returncode == 1
    assert f"{source} line 5: the id 'tea' occurs already at {source} line 1" in done.stderr
    assert collections(data) == []
    done = tercet("collection", "build", str(source), "--collection", "x", "--on-error", "skip")
    assert done.returncode == 0
    assert f'skipped {source} line 6: "text" is missing' in done.stderr
    assert [line.split() for line in done.stdout.splitlines() if "skipped" in line] == [["skipped", "2"]]


def test_progress_as_json_lines(tercet: Run, source: Path) -> None:
    done = tercet("collection", "build", str(source), "--collection", "x", "--progress", "json")
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert lines[-1]["snapshot"] == "000001"
    assert lines[-1]["documents_done"] == lines[-1]["documents_total"] == 4
    assert all(line["documents_total"] == 4 for line in lines)
    assert done.stderr == ""


def test_a_rebuild_keeps_settings_and_another_encoder_is_refused(
    tercet: Run, built: Path, source: Path, tmp_path: Path, embedded_checkpoint: Path
) -> None:
    done = tercet("collection", "build", str(source), "--collection", "small", "--field", "year:number")
    assert done.returncode == 1
    assert "settings are fixed at creation" in done.stderr
    other = tmp_path / "other"
    other.mkdir()
    for path in embedded_checkpoint.rglob("*"):
        if path.is_file():
            target = other / path.relative_to(embedded_checkpoint)
            target.parent.mkdir(exist_ok=True)
            target.symlink_to(path)
    settings = json.loads((other / "tercet.json").read_text())
    (other / "tercet.json").unlink()
    (other / "tercet.json").write_text(json.dumps({**settings, "query_instruction": "query: "}))
    done = tercet("collection", "build", str(source), "--collection", "small", "--checkpoint", str(other))
    assert done.returncode == 1
    remedy = "give --checkpoint minilm-m3 (or TERCET_CHECKPOINT), or build it again under another name"
    assert remedy in done.stderr
    assert done.stderr.count("fingerprint ") == 2
    done = tercet("search", "small", "tea", "--checkpoint", str(other))
    assert done.returncode == 1
    assert remedy in done.stderr


def test_an_interrupted_build_leaves_nothing(start: Start, tmp_path: Path, data: Path) -> None:
    source = long_source(tmp_path)
    with start("collection", "build", str(source), "--collection", "x", "--progress", "json") as process:
        started_writing(process)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert err == "Error: interrupted; nothing was published\n"
    assert collections(data) == []


def test_a_killed_build_leaves_the_former_snapshot_or_none(
    tercet: Run, start: Start, source: Path, data: Path, tmp_path: Path
) -> None:
    long = long_source(tmp_path)
    segments = data / "collections" / "x" / "segments"

    def kill_a_build(left: int) -> None:
        """Once a segment is begun, so that it is left beside what was there."""
        with start("collection", "build", str(long), "--collection", "x", "--progress", "json") as process:
            started_writing(process)
            while not segments.exists() or len(list(segments.iterdir())) < left:
                time.sleep(0.01)
                assert process.poll() is None
            process.kill()
            process.communicate(timeout=60)

    kill_a_build(left=1)
    assert json.loads(tercet("collection", "show", "x", "--json").stdout)["snapshot"] is None
    assert tercet("collection", "build", str(source), "--collection", "x").returncode == 0
    assert len(list(segments.iterdir())) == 1
    kill_a_build(left=2)
    assert len(list(segments.iterdir())) == 2
    assert json.loads(tercet("collection", "show", "x", "--json").stdout)["documents"] == 4
    assert tercet("collection", "build", str(source), "--collection", "x").returncode == 0
    assert len(list(segments.iterdir())) == 1
    assert tercet("collection", "verify", "x").returncode == 0


def test_a_build_ends_with_the_service_that_started_it(start: Start, tmp_path: Path, data: Path) -> None:
    """Closing its standard input is all that a killed service does."""
    arguments = ("--collection", "x", "--progress", "json", "--stop-with-stdin")
    with start("collection", "build", str(long_source(tmp_path)), *arguments) as process:
        started_writing(process)
        process.communicate(timeout=60)  # closes its standard input
    assert process.returncode == 130
    assert collections(data) == []
