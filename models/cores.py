"""The CPUs that this process may use: its affinity, and the quota of its container."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

ROOT = Path("/")


def usable_cores(root: Path = ROOT) -> int:
    """How many threads can run at once: the smaller of affinity and quota, rounded up, at least 1.

    A container with a quota sees all CPUs of its host; more threads than its share only wait for each other.
    root: of the file tree that shows the control groups.
    """
    # Only Linux has affinities.
    affine = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min([affine, *(math.ceil(quota) for quota in _quotas(root))]))


@dataclass(frozen=True, slots=True)
class _Mount:
    """A mounted tree of control groups: the group at its top, where it is mounted, and its version's form."""

    top: PurePosixPath
    point: PurePosixPath
    unified: bool


def _quotas(root: Path) -> Iterator[float]:
    """CPUs allowed to each control group around this process that has a quota, from the inmost out."""
    try:
        groups = (root / "proc/self/cgroup").read_text("utf-8").splitlines()
        mounts = list(_mounts((root / "proc/self/mountinfo").read_text("utf-8")))
    except OSError:  # not Linux, or /proc is hidden
        return
    for line in groups:
        _, controllers, group = line.split(":", 2)
        if controllers and "cpu" not in controllers.split(","):
            continue
        for mount in mounts:
            if mount.unified == (not controllers):
                for folder in _folders(mount, PurePosixPath(group)):
                    quota = _quota(root / folder.relative_to("/"))
                    if quota is not None:
                        yield quota


def _mounts(mountinfo: str) -> Iterator[_Mount]:
    """The mounts of version 2, and those of version 1 that control CPUs."""
    for line in mountinfo.splitlines():
        mount, _, file_system = line.partition(" - ")
        kind, _, options = file_system.split(" ", 2)
        top, point = mount.split(" ")[3:5]
        if kind == "cgroup2" or (kind == "cgroup" and "cpu" in options.split(",")):
            yield _Mount(PurePosixPath(top), PurePosixPath(point), kind == "cgroup2")


def _folders(mount: _Mount, group: PurePosixPath) -> Iterator[PurePosixPath]:
    """The folders of a group and all around it, as far as they are mounted."""
    # A container may see its own group mounted as the top, under a name that only the host understands.
    inside = group.relative_to(mount.top) if group.is_relative_to(mount.top) else PurePosixPath()
    folder = mount.point / inside
    while folder != mount.point:
        yield folder
        folder = folder.parent
    yield mount.point


def _quota(folder: Path) -> float | None:
    """CPUs that the group of this folder may use; None where it has no limit."""
    try:
        limit, period = (folder / "cpu.max").read_text("utf-8").split()
    except OSError:
        try:
            limit = (folder / "cpu.cfs_quota_us").read_text("utf-8").strip()
            period = (folder / "cpu.cfs_period_us").read_text("utf-8").strip()
        except OSError:
            return None
    return None if limit in ("max", "-1") else int(limit) / int(period)
