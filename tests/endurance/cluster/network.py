"""A network namespace with one link to this machine's own, whose packets can be dropped."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass


class NoNamespaceError(Exception):
    """Namespaces or what drops packets cannot be had here."""


@dataclass(frozen=True, slots=True)
class Link:
    """The way to a namespace. host: the address in it; prefix: of a command that runs there."""

    host: str
    prefix: tuple[str, ...]
    device: str

    def drop(self) -> None:
        """From now on packets to the namespace are lost, without a word."""
        _run("tc", "qdisc", "replace", "dev", self.device, "root", "blackhole")

    def mend(self) -> None:
        """From now on packets arrive."""
        _run("tc", "qdisc", "delete", "dev", self.device, "root")


@contextmanager
def namespace() -> Iterator[Link]:
    """One of this process's own. Raises NoNamespaceError."""
    number = os.getpid() % 250
    name, outer, inner = f"tercet{os.getpid()}", f"tf{os.getpid()}a", f"tf{os.getpid()}b"
    link = Link(f"10.77.{number}.2", ("ip", "netns", "exec", name), outer)
    _run("ip", "netns", "add", name)
    try:
        _run("ip", "link", "add", outer, "type", "veth", "peer", "name", inner, "netns", name)
        _run("ip", "address", "add", f"10.77.{number}.1/24", "dev", outer)
        _run("ip", "link", "set", outer, "up")
        _run(*link.prefix, "ip", "address", "add", f"{link.host}/24", "dev", inner)
        for device in ("lo", inner):
            _run(*link.prefix, "ip", "link", "set", device, "up")
        link.drop()
        link.mend()
        yield link
    finally:
        _run("ip", "netns", "delete", name)  # with the link


def _run(*command: str) -> None:
    try:
        subprocess.run(command, check=True, capture_output=True, text=True)
    except FileNotFoundError as error:
        raise NoNamespaceError(f"{command[0]} is not installed") from error
    except subprocess.CalledProcessError as error:
        raise NoNamespaceError(f"{' '.join(command)}: {error.stderr.strip()}") from error
