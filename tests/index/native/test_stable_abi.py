"""What `stable_abi.h` declares is what Python's own headers have, where these and a compiler are."""

from __future__ import annotations

import re
import shutil
import subprocess
import sysconfig
from pathlib import Path

import pytest

INCLUDE, COMPILER = Path(sysconfig.get_path("include")), shutil.which("cc")
MEMBERS = {
    "PyObject": ("ob_refcnt", "ob_type"),
    "PyMethodDef": ("ml_name", "ml_meth", "ml_flags", "ml_doc"),
    "PyModuleDef_Slot": ("slot", "value"),
    "PyModuleDef_Base": ("ob_base", "m_init", "m_index", "m_copy"),
    "PyModuleDef": ("m_base", "m_name", "m_doc", "m_size", "m_methods", "m_slots", "m_traverse", "m_clear"),
    "PyType_Slot": ("slot", "pfunc"),
    "PyType_Spec": ("name", "basicsize", "itemsize", "flags", "slots"),
    "Py_buffer": (
        "buf",
        "obj",
        "len",
        "itemsize",
        "readonly",
        "ndim",
        "format",
        "shape",
        "strides",
        "internal",
    ),
}

pytestmark = pytest.mark.skipif(
    COMPILER is None or not (INCLUDE / "Python.h").exists(), reason="no compiler, or no headers of Python"
)


@pytest.fixture
def header(repository: Path) -> Path:
    return repository / "index" / "native" / "stable_abi.h"


def compile_with(includes: str, body: str, folder: Path, *flags: str) -> str:
    source = folder / "program.c"
    source.write_text(f"#define Py_LIMITED_API 0x030B0000\n{includes}\n{body}\n", encoding="utf-8")
    command = [str(COMPILER), "-std=gnu11", "-Werror", f"-I{INCLUDE}", *flags, str(source)]
    done = subprocess.run(
        [*command, "-o", str(folder / "program")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return str(folder / "program")


def test_functions_and_objects_have_their_types(header: Path, tmp_path: Path) -> None:
    """A second declaration of another type is an error of the compiler."""
    no_macro = "#undef PyCFunction_NewEx"
    compile_with(f'#include <Python.h>\n{no_macro}\n#include "{header}"', "", tmp_path, "-c")


def test_structures_and_numbers_are_the_same(header: Path, tmp_path: Path) -> None:
    numbers = re.findall(r"\b(METH_\w+|PyBUF_\w+|Py_TPFLAGS_\w+|Py_(?:bf|mod|tp)_\w+) =", header.read_text())
    assert len(numbers) == 11
    values = [f"(long long){name}" for name in numbers]
    for name, members in MEMBERS.items():
        values += [
            f"(long long)sizeof({name})",
            *(f"(long long)offsetof({name}, {each})" for each in members),
        ]
    body = "#include <stddef.h>\n#include <stdio.h>\nint main(void) {\n"
    body += "".join(f'    printf("{value} %lld\\n", {value});\n' for value in values) + "    return 0;\n}"
    told = []
    for includes in (f'#include "{header}"', "#include <Python.h>"):
        program = compile_with(includes, body, tmp_path)
        told.append(subprocess.run([program], capture_output=True, text=True, check=True).stdout)
    assert told[0] == told[1]
