"""The folders' arrows: who may import whom, and which heavy libraries stay where."""

import ast
import functools
import importlib
import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

from tests.arrows import (
    ARROWS,
    CLUSTER_ORDER,
    HOMES,
    INDEX_ORDER,
    MODELS_ORDER,
    PACKAGES,
    SERVICE_ORDER,
    TRAINING_ARROWS,
)

ROOT = Path(__file__).resolve().parent.parent


SOURCES = sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))


# Methods that change names on the disk, or force it: in index `files/directory.py` alone does so.
CHANGES_OF_NAMES = {
    *("fsync", "fdatasync", "link", "symlink_to", "hardlink_to", "rename", "renames", "unlink", "rmdir"),
    *("rmtree", "copyfile", "move"),
}


@functools.cache
def nodes_of(path: Path) -> tuple[tuple[str, ...], tuple[ast.Call, ...]]:
    """Every absolute module that a file imports, also inside functions, and all its calls."""
    modules: list[str] = []
    calls: list[ast.Call] = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            modules += (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            modules.append("." * node.level + (node.module or ""))
        elif isinstance(node, ast.Call):
            calls.append(node)
    return tuple(modules), tuple(calls)


def imported_modules(path: Path) -> tuple[str, ...]:
    return nodes_of(path)[0]


def within(name: str, allowed: set[str], separator: str) -> bool:
    return any(name == entry or name.startswith(entry + separator) for entry in allowed)


def allows(place: Path, module: str) -> bool:
    """Whether the file at a place of the repository may import the module."""
    package = place.parts[0]
    top, _, ours = module.partition(".")
    if top == "tercet":
        return ours.partition(".")[0] == package or within(ours, ARROWS[package], ".")
    if top in HOMES:
        return within(place.as_posix(), HOMES[top], "/")
    return top not in {"", "tests", "benchmarks", "examples"}  # a relative import has no top


@pytest.mark.slow
def test_imports_follow_the_arrows() -> None:
    places = [(path.relative_to(ROOT), module) for path in SOURCES for module in imported_modules(path)]
    assert [f"{place} imports {module}" for place, module in places if not allows(place, module)] == []


@pytest.mark.slow
def test_every_module_of_ours_has_one_name() -> None:
    others = (
        path for folder in ("tests", "benchmarks", "examples") for path in (ROOT / folder).rglob("*.py")
    )
    bare = {
        f"{path.relative_to(ROOT)} imports {module}"
        for path in [*SOURCES, *others]
        for module in imported_modules(path)
        if module.partition(".")[0] in PACKAGES
    }
    assert bare == set()
    assert not PACKAGES & set(sys.modules)


@pytest.mark.slow
def test_all_modules_load_under_the_one_name() -> None:
    """Whatever is installed here: modules that need a missing extra say so by an ImportError."""
    code = (
        "import contextlib, importlib, pkgutil, sys, tercet\n"
        "for module in pkgutil.walk_packages(tercet.__path__, 'tercet.', onerror=lambda name: None):\n"
        "    with contextlib.suppress(ImportError):\n"
        "        importlib.import_module(module.name)\n"
        f"print(*({PACKAGES} & set(sys.modules)), sum(name.startswith('tercet.') for name in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    *bare, modules = done.stdout.split()
    assert bare == []
    assert int(modules) > 700


@pytest.mark.parametrize("folder", sorted(TRAINING_ARROWS))
def test_the_folders_of_training_know_those_below(folder: str) -> None:
    for path in (ROOT / "training" / folder).rglob("*.py"):
        for module in imported_modules(path):
            package, _, rest = module.removeprefix("tercet.").partition(".")
            other = rest.partition(".")[0]
            if package == "training" and other in TRAINING_ARROWS and other != folder:
                assert other in TRAINING_ARROWS[folder], f"{path.relative_to(ROOT)} imports {module}"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("folder", "order"),
    [
        ("index", INDEX_ORDER),
        ("models", MODELS_ORDER),
        ("service", SERVICE_ORDER),
        ("cluster", CLUSTER_ORDER),
    ],
)
def test_what_is_in_a_package_knows_what_is_below(folder: str, order: list[str]) -> None:
    found = {path.stem for path in (ROOT / folder).iterdir() if path.name[0] not in "._"}
    assert found == set(order)
    for path in (ROOT / folder).rglob("*.py"):
        place = path.relative_to(ROOT / folder).parts[0].removesuffix(".py")
        for module in imported_modules(path):
            package, _, rest = module.removeprefix("tercet.").partition(".")
            if package == folder and place != "__init__":
                other = rest.partition(".")[0]
                below = order[: order.index(place) + 1]
                assert other in below, f"{path.relative_to(ROOT)} imports {module}"


def test_names_on_the_disk_are_changed_in_one_place() -> None:
    def changes(call: ast.Call) -> bool:
        if not isinstance(call.func, ast.Attribute):
            return False
        replaces = call.func.attr == "replace" and len(call.args) == 1  # of a path: that of a text takes two
        return replaces or call.func.attr in CHANGES_OF_NAMES

    places = {
        str(path.relative_to(ROOT))
        for path in (ROOT / "index").rglob("*.py")
        for call in nodes_of(path)[1]
        if changes(call)
    }
    assert places == {"index/files/directory.py"}


@pytest.mark.parametrize("package", sorted(PACKAGES))
def test_packages_load_from_this_repository_and_do_no_work(package: str) -> None:
    module = importlib.import_module(f"tercet.{package}")
    assert module.__file__ is not None
    assert Path(module.__file__).resolve() == ROOT / package / "__init__.py"
    body = ast.parse(Path(module.__file__).read_text(encoding="utf-8")).body
    assert len(body) == 1, "an __init__.py holds only a docstring"


def loaded_with(modules: str) -> set[str]:
    """All modules that a process has once it has imported these, named with commas between."""
    code = f"import sys, {modules}; print(*sys.modules)"
    result = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr
    return set(result.stdout.split())


@pytest.mark.slow
def test_serving_needs_no_torch() -> None:
    loaded = loaded_with(
        "tercet.index.snapshot, tercet.models.onnx_encoder, tercet.service.app, tercet.service.serving, "
        "tercet.cli.main"
    )
    assert not {"torch", "transformers", "peft"} & loaded


@pytest.mark.slow
def test_serving_and_exporting_adapters_need_no_peft() -> None:
    if importlib.util.find_spec("onnxscript") is None:
        pytest.skip("the export needs onnxscript: install tercet[torch]")
    assert "peft" not in loaded_with("tercet.models.torch_encoder, tercet.models.export_onnx")


def test_what_a_collection_is_can_be_read_without_kernels() -> None:
    modules = [f"tercet.index.catalog.{path.stem}" for path in (ROOT / "index" / "catalog").glob("[!_]*.py")]
    assert modules
    assert "tercet.index.native" not in loaded_with(", ".join(modules))


@pytest.mark.slow
def test_index_needs_no_web_framework() -> None:
    assert not {"fastapi", "pydantic"} & loaded_with("tercet.index.collection")


# What asks other machines → the keyword and value that keep proxies of the environment out.
CLIENTS = {
    "httpx": ("trust_env", "False"),
    "QdrantClient": ("trust_env", "False"),
    "MilvusClient": ("grpc_options", "{'grpc.enable_http_proxy': 0}"),
    "aiohttp.ClientSession": ("trust_env", "False"),
}
NO_CALLS = {"CloseError", "ConnectError", "Limits", "Timeout", "Response", "Request", "URL"}


@pytest.mark.slow
def test_no_key_goes_to_a_proxy_of_the_environment() -> None:
    found = 0
    for path in SOURCES:
        for node in nodes_of(path)[1]:
            called = ast.unparse(node.func)
            client = "httpx" if called.startswith("httpx.") else called
            given = {keyword.arg: ast.unparse(keyword.value) for keyword in node.keywords}
            if client not in CLIENTS or called.removeprefix("httpx.") in NO_CALLS or "path" in given:
                continue
            keyword, value = CLIENTS[client]
            assert given.get(keyword) == value, f"{path}:{node.lineno} {called} needs {keyword}={value}"
            found += 1
        imported = {name.partition(".")[0] for name in imported_modules(path)}
        assert not imported & {"requests", "urllib3"}, path
    assert found >= 6
