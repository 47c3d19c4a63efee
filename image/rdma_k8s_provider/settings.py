# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The options of the provider. A wrong one ends it at the start, with one sentence and exit code 2 (F97)."""

from __future__ import annotations

import argparse
import ipaddress
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Optional

from rdma_k8s.core.errors import RdmaError
from rdma_k8s.core.net import Prefix
from rdma_k8s.core.oke import nic_table, options
from rdma_k8s.host import imds
from rdma_k8s.version import VERSION

SOCKET = "unix:///var/run/dranet/rdma-k8s.sock"
METRICS = "127.0.0.1:9178"
LEVELS = ("debug", "info", "warning", "error")
_LONGEST_SOCKET = 100  # the kernel takes 107 bytes; the socket is bound under a longer name first
_HOST_PORT = re.compile(r"(?:\[([0-9a-fA-F:.]+)\]|([0-9.]+)):([0-9]{1,5})")


@dataclass(frozen=True)
class Listen:
    """Where to listen: the path of a socket, or an address with a port."""

    path: str = ""
    address: str = ""
    port: int = 0

    def __str__(self) -> str:
        if self.path:
            return "unix://" + self.path
        return "http://%s:%d" % ("[%s]" % self.address if ":" in self.address else self.address, self.port)


@dataclass(frozen=True)
class Settings:
    """All options, checked."""

    child_range: Prefix
    listen: tuple[Listen, ...]
    metrics: Optional[Listen]
    imds_url: str
    host_root: str
    table: tuple[nic_table.Entry, ...]
    log_level: str


def parser() -> argparse.ArgumentParser:
    """The options as the command line shows them."""
    made = argparse.ArgumentParser(
        prog="rdma_k8s_provider",
        description="Answers DRANET's webhook calls: attributes, configurations and profiles of NICs on OKE.",
    )
    made.add_argument("--version", action="version", version=VERSION)
    made.add_argument(
        "--cloud-provider-options",
        action="append",
        default=[],
        metavar="PROVIDER.OPTION=VALUE",
        help="an option of the provider, as DRANET spells it: oke.rdma-child-ipv4-cidr=CIDR; repeatable",
    )
    made.add_argument(
        "--cloud-provider-hint",
        default="",
        metavar="NAME",
        help="OKE or empty; with options another one is refused",
    )
    made.add_argument(
        "--listen",
        action="append",
        metavar="URL",
        help="unix:///PATH or http://ADDRESS:PORT; repeatable (default: %s)" % SOCKET,
    )
    made.add_argument(
        "--bind-address",
        default=METRICS,
        metavar="ADDRESS:PORT",
        help="where /metrics, /healthz and /readyz are; empty: nowhere (default: %(default)s)",
    )
    made.add_argument(
        "--imds-url",
        default="",
        metavar="URL",
        help="base URL of the metadata service (default: %s)" % imds.DEFAULT_URL,
    )
    made.add_argument(
        "--host-root", default="/", metavar="DIR", help="where the file system of the host is mounted"
    )
    made.add_argument(
        "--nic-table", default="", metavar="FILE", help="NICs and their children, instead of OCA's formula"
    )
    made.add_argument(
        "--node-name",
        default=os.environ.get("NODE_NAME", ""),
        metavar="NAME",
        help="whose part of the table counts (default: the environment variable NODE_NAME)",
    )
    made.add_argument("--log-level", default="info", choices=LEVELS)
    return made


def read(words: Optional[Sequence[str]] = None) -> Settings:
    """Parse and check the command line.

    :raises RdmaError: the first option that is wrong
    :raises SystemExit: an option that does not exist
    """
    given = parser().parse_args(words)
    chosen = options.parse(given.cloud_provider_options, given.cloud_provider_hint).child_range
    if chosen is None:
        raise AssertionError  # only discovery ignores options, and there is none here
    listen = tuple([listen_at(text) for text in given.listen or [SOCKET]])
    metrics = _host_port(given.bind_address, given.bind_address) if given.bind_address else None
    if given.imds_url:
        imds.check_url(given.imds_url)
    if not Path(given.host_root).is_dir():
        raise RdmaError(
            "host_root_missing",
            "The root %s of the host is not a directory." % given.host_root,
            hint="Give the mount point of the host's file system, or a recorded tree.",
        )
    table = _table(given.nic_table, chosen, given.node_name) if given.nic_table else ()
    return Settings(chosen, listen, metrics, given.imds_url, given.host_root, table, given.log_level)


def listen_at(text: str) -> Listen:
    """Where a URL says to listen.

    :raises RdmaError: ``listen_malformed``
    """
    scheme, separator, rest = text.partition("://")
    if scheme == "unix" and rest.startswith("/") and not rest.endswith("/") and len(rest) <= _LONGEST_SOCKET:
        return Listen(path=rest)
    if scheme == "http" and separator:
        return _host_port(rest.rstrip("/"), text)
    raise _wrong_address(text)


def _host_port(text: str, shown: str) -> Listen:
    found = _HOST_PORT.fullmatch(text)
    if found is None or int(found[3]) > 65535:
        raise _wrong_address(shown)
    try:
        address = ipaddress.ip_address(found[1] or found[2])
    except ValueError:
        raise _wrong_address(shown) from None
    return Listen(address=str(address), port=int(found[3]))


def _wrong_address(text: str) -> RdmaError:
    return RdmaError(
        "listen_malformed",
        "%r is nowhere to listen: expected unix:///PATH (at most %d characters) or http://ADDRESS:PORT; for "
        "--bind-address ADDRESS:PORT." % (text[:200], _LONGEST_SOCKET),
        hint="DRANET's --webhook-url takes the same unix:///PATH.",
        found=text[:200],
    )


def _table(path: str, child_range: Prefix, node_name: str) -> tuple[nic_table.Entry, ...]:
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise RdmaError(
            "nic_table_unreadable",
            "The table of NICs %s cannot be read: %s." % (path, error),
            hint="Mount it into the container, or leave --nic-table out.",
            path=path,
        ) from error
    return nic_table.parse(text, child_range, node_name)
