"""Exit codes, one-line failures, and what is not loaded without need."""

import errno
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tercet.service.keys.keys import KEY_SETTINGS
from tercet.service.settings.settings import ROLES

Run = Callable[..., subprocess.CompletedProcess[str]]


def test_help_names_every_command(tercet: Run) -> None:
    done = tercet("--help")
    assert done.returncode == 0
    for command in ("serve", "encoder", "collection", "search", "embed", "eval", "tune", "export", "demo"):
        assert f"\n  {command} " in done.stdout
    assert "build" in tercet("collection", "--help").stdout
    assert "--encoder-timeout-seconds <float>" in tercet("serve", "--help-all").stdout  # however narrow
    assert tercet("--version").stdout.startswith("tercet ")


def test_nothing_heavy_is_loaded_for_help_or_verify(repository: Path) -> None:
    heavy = "{'numpy', 'faiss', 'onnxruntime', 'pydantic', 'fastapi', 'tokenizers', 'httpx'}"
    code = (
        "import sys; from tercet.cli.main import application; application([]); "
        f"sys.exit(sorted({heavy} & set(sys.modules)) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=repository, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_a_server_without_encoder_workers_loads_no_http_client(repository: Path) -> None:
    code = (
        "import sys, tercet.cli.serve, tercet.service.app\n"
        "sys.exit(bool({'httpx', 'aiohttp'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=repository, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_libraries_start_as_many_threads_as_there_are_cores(repository: Path) -> None:
    code = (
        "import atexit, os, sys; from tercet.cli.main import main; sys.argv = ['tercet', '--version']; "
        "os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:1]); "
        f"atexit.register(lambda: print(*map(os.environ.get, {THREADS}))); main()"
    )
    for given, threads in (({}, "1 4"), (dict(zip(THREADS, "35", strict=True)), "3 5")):
        kept = {name: value for name, value in os.environ.items() if name not in THREADS}
        done = subprocess.run(
            [sys.executable, "-c", code],
            cwd=repository,
            env={**kept, **given},
            capture_output=True,
            text=True,
        )
        assert done.stdout.splitlines()[-1] == threads, done.stderr


THREADS = ["OMP_NUM_THREADS", "OPENBLAS_THREAD_TIMEOUT"]
USAGE = [
    ("nonsense",),
    ("search", "small"),
    ("search", "small", "tea", "--weights", "most"),
    ("search", "small", "tea", "--weights", "1,2"),
    ("search", "small", "tea", "--weights", "1,nan,1"),
    ("search", "small", "tea", "--weights=-1,1,1"),
    ("search", "small", "tea", "--filter", "{"),
    ("search", "small", "tea", "--top-k", "0"),
    ("collection", "build", "x.jsonl"),
    ("collection", "build", "x.jsonl", "--collection", "x", "--on-error", "ignore"),
    ("collection", "build", "x.jsonl", "--collection", "x", "--field", "year"),
    ("collection", "build", "x.jsonl", "--collection", "x", "--field", "year:date"),
    ("collection", "build", "x.jsonl", "--collection", "x", "--field", "a:number", "--field", "a:number"),
    ("embed", "--input", "x.jsonl"),
    ("embed", "--input", "x.jsonl", "--output", "x", "--outputs", "dense,images"),
    ("serve", "--port", "many"),
    ("serve", "--nonsense", "1"),
    ("serve", "--port", "70000"),
    ("encoder", "--flush-seconds", "1"),
]


@pytest.mark.parametrize("arguments", USAGE, ids=" ".join)
def test_wrong_usage_is_2(tercet: Run, arguments: tuple[str, ...]) -> None:
    done = tercet(*arguments)
    assert done.returncode == 2
    assert done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    "command", [("serve",), ("encoder",), ("collection", "build", "x.jsonl")], ids=" ".join
)
@pytest.mark.parametrize("flag", ["--api-keys", "--client-key"])
@pytest.mark.parametrize("joined", [True, False])
def test_a_key_is_no_flag(tercet: Run, command: tuple[str, ...], flag: str, joined: bool) -> None:
    done = tercet(*command, *([f"{flag}=s3cret"] if joined else [flag, "s3cret"]))
    assert done.returncode == 2
    variable = f"TERCET_{flag[2:].replace('-', '_').upper()}"
    assert f"name that in {variable}_FILE, or set {variable};" in done.stderr
    assert done.stderr.count("\n") == 1
    assert "s3cret" not in done.stdout + done.stderr


def test_files_of_keys_are_flags_and_keys_are_none(tercet: Run) -> None:
    shown = tercet("serve", "--help-all").stdout.split()
    for flag in ("--api-keys", "--read-keys", "--encoder-key"):
        assert flag not in shown
        assert f"{flag}-file" in shown
    done = tercet("serve", "--api-keys-file", "none")
    assert (done.returncode, done.stderr) == (2, "Error: key file none: No such file or directory\n")


def test_a_worker_has_the_flags_of_its_settings_and_no_others(tercet: Run) -> None:
    shown = set(re.findall(r"--[a-z][a-z-]+", tercet("encoder", "--help-all").stdout)) - {"--help-all"}
    for name, role in ROLES.items():
        offered = "worker" in role.servers and name not in KEY_SETTINGS
        assert (f"--{name.replace('_', '-')}" in shown) is offered, name
    refused = tercet("encoder", "--max-queries", "5")
    assert refused.returncode == 2
    assert "--max-queries" in refused.stderr


def test_a_wrong_setting_is_named_in_one_line(tercet: Run, tmp_path: Path) -> None:
    done = tercet("collection", "show", "x", TERCET_PORT="many")
    assert done.returncode == 2
    assert done.stderr.startswith("Error: setting port (TERCET_PORT)")
    (tmp_path / "tercet.toml").write_text('chekpoint = "x"\n')
    done = tercet("collection", "show", "x")
    assert done.returncode == 2
    assert "unknown setting 'chekpoint'" in done.stderr


FAILURES = [
    (("collection", "show", "none"), "collection 'none' does not exist"),
    (("collection", "verify", "none"), "collection 'none' does not exist"),
    (("collection", "show", "../none"), "does not match"),
    (("search", "none", "tea"), "collection 'none' does not exist"),
    (("demo", "--no-serve", "--checkpoint", "no/such/folder"), "no/such/folder"),
    (("search", "x", "tea", "--filter", '{"near": {}}'), "near"),
    (("collection", "build", "none.jsonl", "--collection", "x"), "none.jsonl: no such file or folder"),
    (("collection", "build", ".", "--collection", "X"), "does not match"),
    (("embed", "--input", "none.jsonl", "--output", "x.safetensors"), "none.jsonl: No such file"),
    (("eval", "none"), "none: no such folder"),
    (("export", "none", "--output", "x"), "'none' is neither one that comes with Tercet"),
]


@pytest.mark.parametrize(("arguments", "why"), FAILURES, ids=[" ".join(case[0]) for case in FAILURES])
def test_a_failure_is_1_and_one_line(tercet: Run, arguments: tuple[str, ...], why: str) -> None:
    done = tercet(*arguments)
    assert done.returncode == 1
    assert done.stderr.startswith("Error: ")
    assert done.stderr.count("\n") == 1
    assert why in done.stderr
    assert done.stdout == ""


def test_a_collection_of_another_data_root_is_named_with_it(tercet: Run, tmp_path: Path) -> None:
    (tmp_path / "d" / "collections" / "tea").mkdir(parents=True)
    (tmp_path / "d" / "collections" / "tea" / "collection.json").write_text("{}")
    done = tercet("search", "tea", "hot", "--data", "d/collections")
    assert done.stderr.endswith("(there is none in d/collections/collections, but there is with --data d)\n")
    done = tercet("search", "none", "hot", "--data", "d")
    ending = "; there are tea (looked in d/collections; --data names another data root)\n"
    assert done.stderr.endswith(ending)


def test_a_collection_that_is_not_there_is_answered_with_names(tercet: Run, tmp_path: Path) -> None:
    done = tercet("search", "tea", "hot", "--data", "d")
    assert done.stderr.endswith(" first (looked in d/collections; --data names another data root)\n")
    for name in ("tea", "green-tea", "water", "rail", "noon"):
        (tmp_path / "d" / "collections" / name).mkdir(parents=True)
        (tmp_path / "d" / "collections" / name / "collection.json").write_text("{}")
    done = tercet("search", "watre", "hot", "--data", "d")
    assert done.returncode == 1
    assert ", or did you mean water? (looked in d/collections; " in done.stderr
    done = tercet("search", "zzz", "hot", "--data", "d")
    assert "; there are green-tea, noon, rail and 2 more (looked in " in done.stderr


def test_too_little_memory_is_1_and_one_line(tercet: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(*_: object) -> None:
        raise MemoryError("Unable to allocate 8.00 GiB")

    monkeypatch.setattr("tercet.index.verify.verify", failing)
    done = tercet("collection", "verify", "small")
    assert done.returncode == 1
    assert done.stderr == (
        "Error: there is too little memory (Unable to allocate 8.00 GiB): free some, or ask for less\n"
    )


def test_a_full_disk_is_1_and_one_line(tercet: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("tercet.index.verify.verify", failing)
    done = tercet("collection", "verify", "small")
    assert done.returncode == 1
    assert done.stderr == "Error: No space left on device: free some space, and do it again\n"


@pytest.mark.slow
def test_what_the_encoding_of_a_terminal_lacks_is_escaped(
    environment: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "x.jsonl").write_text('{"id": "a", "text": "차 \\ud83d"}\n', encoding="utf-8")
    for encoding, shown in (("utf-8", "차 \\ud83d"), ("ascii", "\\ucc28 \\ud83d")):
        done = subprocess.run(
            [
                sys.executable,
                "-m",
                "tercet.cli.main",
                "collection",
                "build",
                "x.jsonl",
                "--collection",
                "x",
                "--dry-run",
            ],
            env={**environment, "PYTHONIOENCODING": encoding},
            cwd=tmp_path,
            capture_output=True,
            encoding="utf-8",
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, "")
        assert f'"text": "{shown}"' in done.stdout


def test_a_failure_of_faiss_is_1_and_one_line(
    tercet: Run, source: Path, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*_: object) -> None:
        raise RuntimeError("Error in faiss:\nno progress")

    monkeypatch.setattr("tercet.index.dense.kinds.SMALLEST_INDEX", 1)
    monkeypatch.setattr("tercet.index.dense.building._build_hnsw", failing)
    done = tercet("collection", "build", str(source), "--collection", "small", "--dense-kind", "hnsw")
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("Error: the hnsw index of 4 vectors of ")
    assert "no progress" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (data / "collections" / "small").exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    "arguments",
    [
        ("search", "small", b"caf\xe9"),
        ("documents", "get", b"\xff", "--collection", "small"),
        ("documents", "delete", b"\xff", "--collection", "small", "--url", "http://127.0.0.1:9"),
        ("collection", "build", b"\xff.jsonl", "--collection", "small"),
        ("serve", b"--host=\xff"),
        (b"\xff",),
    ],
)
def test_other_bytes_than_utf8_are_wrong_usage(
    environment: dict[str, str], tmp_path: Path, arguments: tuple[str | bytes, ...]
) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tercet.cli.main", *arguments],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert "is no UTF-8 text" in done.stderr
    assert "\\x" in done.stderr  # the bytes, as Python writes them
