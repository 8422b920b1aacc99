"""Runs the kernels' tests as ARM's processors would: qemu-user interprets an ARM Python of Debian's, with the
wheel that is built here for ARM and those of what it needs.

No search: onnxruntime 1.31.1, which the command line loads, ends qemu 7.2 when it is imported. Of speed this
says nothing. What is fetched stays in build/arm. Needs apt and qemu-user.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build" / "arm"
SYSTEM = BUILD / "system"
PACKAGES = BUILD / "packages"
PYTHON = BUILD / "python"
APT = BUILD / "apt"
NEWEST_GLIBC = 36  # 2.36, of Debian 12
# Processors: with products of matrices of bytes, with products of four bytes alone, and with neither.
PROCESSORS = {"neon_i8mm": "max,pauth-impdef=on", "neon_dotprod": "neoverse-n1", "plain": "cortex-a72"}
TESTS = (
    "tests/index/native",
    "tests/index/token_vectors/test_centroid_groups.py",
    "tests/models/native/test_kernels.py",
)
# One compiles kernels for x86-64, the other looks for Python's headers.
LEFT_OUT = ("tests/index/native/test_amx.py", "tests/index/native/test_stable_abi.py")


def main() -> None:
    """Makes what is missing, and runs it for each processor; the exit code is 1 where some of it failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("variants", nargs="*", metavar="VARIANT", help=f"some of {', '.join(PROCESSORS)}")
    variants = parser.parse_args().variants or list(PROCESSORS)
    if missing := [name for name in ("qemu-aarch64", "apt-get", "dpkg-deb") if shutil.which(name) is None]:
        print(f"nothing was run: {', '.join(missing)} is not installed (apt-get install qemu-user)")
        return
    BUILD.mkdir(parents=True, exist_ok=True)
    unpack_system()
    install_packages()
    write_python()
    failed = [name for name in variants if not run(name)]
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


def unpack_system() -> None:
    """Debian's Python for ARM with its libraries, by an apt that knows of no other machine."""
    if SYSTEM.exists():
        return
    for folder in ("lists/partial", "archives/partial"):
        (APT / folder).mkdir(parents=True, exist_ok=True)
    (APT / "status").touch()
    options = {
        "APT::Architecture": "arm64",
        "APT::Architectures": "arm64",
        "Dir::State": APT,
        "Dir::State::status": APT / "status",
        "Dir::Cache": APT,
    }
    apt = ["apt-get", "--quiet", "--quiet", *(f"--option={name}={value}" for name, value in options.items())]
    subprocess.run([*apt, "update"], check=True)
    packages = ("python3", "libpython3-stdlib", "libgomp1", "libstdc++6")
    subprocess.run(
        [*apt, "--yes", "--no-install-recommends", "--download-only", "install", *packages], check=True
    )
    fresh = SYSTEM.with_suffix(".new")
    for package in sorted((APT / "archives").glob("*.deb")):
        subprocess.run(["dpkg-deb", "--extract", str(package), str(fresh)], check=True)
    fresh.rename(SYSTEM)


def install_packages() -> None:
    """The wheel of what is here, made for ARM, and once those of what it needs and of what tests need."""
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    wheels = BUILD / "wheels"
    shutil.rmtree(wheels, ignore_errors=True)
    subprocess.run(
        [*pip, "wheel", "--no-deps", "--wheel-dir", str(wheels), str(ROOT)],
        check=True,
        env=os.environ | {"KERNEL_TARGET": "aarch64-linux-gnu.2.17"},
    )
    (wheel,) = wheels.glob("tercet-*_aarch64.whl")
    (version,) = (SYSTEM / "usr" / "lib").glob("python3.*")
    of_machine = [f"--platform=manylinux_2_{number}_aarch64" for number in range(17, NEWEST_GLIBC + 1)]
    install = [
        *pip, "install", "--target", str(PACKAGES), "--only-binary=:all:", "--no-compile", "--upgrade",
        "--implementation=cp", f"--python-version={version.name.removeprefix('python')}", *of_machine,
    ]  # fmt: skip
    if not PACKAGES.exists():
        constraints = ["--constraint", str(ROOT / "constraints.txt")]
        tools = ("pytest", "pytest-asyncio", "pytest-timeout", "hypothesis", "setuptools")
        subprocess.run([*install, *constraints, f"{wheel}[cpu]", *tools], check=True)
    else:
        subprocess.run([*install, "--no-deps", str(wheel)], check=True)


def write_python() -> None:
    """A command that is the ARM Python, also for processes that it starts; ARM_CPU names the processor."""
    (program,) = (SYSTEM / "usr" / "bin").glob("python3.[0-9]*[0-9]")
    PYTHON.write_text(
        f"#!/bin/sh\nexport PYTHONHOME={SYSTEM}/usr PYTHONPATH={PACKAGES}:{ROOT}\n"
        f'exec qemu-aarch64 -cpu "$ARM_CPU" -L {SYSTEM} -0 {PYTHON} {program} "$@"\n'
    )
    PYTHON.chmod(0o755)


def run(variant: str) -> bool:
    """The tests with a processor; whether all is as it should be."""
    environment = {"ARM_CPU": PROCESSORS[variant]}
    print(f"{variant}: as {PROCESSORS[variant]}", flush=True)
    chosen = "from tercet.models.native.kernels import INSTRUCTIONS; print(INSTRUCTIONS)"
    if (found := output_of([str(PYTHON), "-c", chosen], environment)) != variant:
        print(f"it takes {found}")
        return False
    left_out = [f"--ignore={path}" for path in LEFT_OUT]
    tests = [
        str(PYTHON), "-m", "pytest", "-q", "-p", "no:cacheprovider", "--noconftest", "--timeout=900",
        "--override-ini=pythonpath=.", "-m", "not slow", *left_out, *TESTS,
    ]  # fmt: skip
    return subprocess.run(tests, cwd=ROOT, env=os.environ | environment, check=False).returncode == 0


def output_of(command: list[str], environment: dict[str, str]) -> str:
    """What a command prints, without the line ends around it."""
    done = subprocess.run(
        command, cwd=BUILD, env=os.environ | environment, check=False, stdout=subprocess.PIPE, text=True
    )
    if done.returncode:
        sys.exit(f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout}")
    return done.stdout.strip()


if __name__ == "__main__":
    main()
