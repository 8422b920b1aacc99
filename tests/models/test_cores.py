"""CPUs that a process may use, from trees of files as Linux shows them."""

import os
from pathlib import Path

import pytest

from tercet.models.cores import usable_cores

V1_MOUNT = "35 32 0:31 {top} /sys/fs/cgroup/cpu,cpuacct rw,nosuid - cgroup cgroup rw,cpu,cpuacct"
V2_MOUNT = "32 23 0:28 {top} /sys/fs/cgroup rw,nosuid - cgroup2 cgroup rw,nsdelegate"


@pytest.fixture(autouse=True)
def eight_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)))


def tree(root: Path, groups: str, mount: str, files: dict[str, str]) -> Path:
    """A file tree with these control groups; files are below /sys/fs/cgroup."""
    (root / "proc/self").mkdir(parents=True)
    (root / "proc/self/cgroup").write_text(groups)
    other = "24 23 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw"
    (root / "proc/self/mountinfo").write_text(f"{other}\n{mount}\n")
    for name, text in files.items():
        path = root / "sys/fs/cgroup" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


@pytest.mark.parametrize(
    ("limit", "cores"),
    [
        ("200000 100000", 2),
        ("150000 100000", 2),
        ("1000 100000", 1),
        ("max 100000", 8),
        ("1600000 100000", 8),
    ],
)
def test_version_2(tmp_path: Path, limit: str, cores: int) -> None:
    root = tree(tmp_path, "0::/\n", V2_MOUNT.format(top="/"), {"cpu.max": f"{limit}\n"})
    assert usable_cores(root) == cores


@pytest.mark.parametrize(("quota", "cores"), [("250000", 3), ("-1", 8)])
def test_version_1(tmp_path: Path, quota: str, cores: int) -> None:
    files = {"cpu.cfs_quota_us": f"{quota}\n", "cpu.cfs_period_us": "100000\n"}
    groups = "11:memory:/docker/c1\n4:cpu,cpuacct:/docker/c1\n0::/docker/c1\n"
    mount = V1_MOUNT.format(top="/docker/c1")
    root = tree(tmp_path, groups, mount, {f"cpu,cpuacct/{name}": text for name, text in files.items()})
    assert usable_cores(root) == cores


@pytest.mark.parametrize("limited", ["", "pod/", "pod/container/"])
def test_the_smallest_quota_of_all_groups_around_counts(tmp_path: Path, limited: str) -> None:
    files = {f"{place}cpu.max": "max 100000\n" for place in ("pod/", "pod/container/")}
    files[f"{limited}cpu.max"] = "300000 100000\n"
    root = tree(tmp_path, "0::/pod/container\n", V2_MOUNT.format(top="/"), files)
    assert usable_cores(root) == 3


def test_groups_of_other_processes_do_not_count(tmp_path: Path) -> None:
    files = {"other/cpu.max": "100000 100000\n", "mine/cpu.max": "400000 100000\n"}
    assert usable_cores(tree(tmp_path, "0::/mine\n", V2_MOUNT.format(top="/"), files)) == 4


def test_a_group_named_from_outside_is_the_mounted_top(tmp_path: Path) -> None:
    root = tree(tmp_path, "0::/kubepods/p1/c1\n", V2_MOUNT.format(top="/c1"), {"cpu.max": "100000 100000\n"})
    assert usable_cores(root) == 1


def test_affinity_counts_without_a_quota(tmp_path: Path) -> None:
    assert usable_cores(tmp_path) == 8


def test_of_this_very_machine() -> None:
    assert 1 <= usable_cores() <= 8
