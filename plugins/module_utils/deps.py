# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The only place that imports third-party libraries. Private to rdma.k8s: it may change with any release.

Each library is imported when it is first asked for, since an import costs more than most reads. A library that is not
there raises ``RdmaError`` with code ``library_missing``; ``details["library"]`` and ``details["reason"]`` say which and
why, so that a module can turn it into the usual message of Ansible.
"""

from __future__ import annotations

import importlib
import json
from typing import Any, Callable

from .core.errors import RdmaError

MINIMUM = {
    "netaddr": "0.10.0",
    "pyroute2": "0.7.2",
    "jmespath": "1.0.0",
    "argcomplete": "3.1.0",
    "PyYAML": "6.0",
    "kubernetes": "31.0.0",
    "oci": "2.189.0",
    "alibabacloud-cs20151215": "7.2.3",
    "alibabacloud-eflo-controller20221215": "3.2.0",
}


def load(library: str, module: str = "") -> Any:
    """Import ``module`` (default: the library itself) and return it.

    :raises RdmaError: ``library_missing``.
    """
    try:
        return importlib.import_module(module or library)
    except ImportError as error:
        raise RdmaError(
            "library_missing",
            "The Python library %s (%s or newer) is needed and cannot be imported: %s."
            % (library, MINIMUM[library], error),
            hint="Install it for the Python that runs this.",
            library=library,
            minimum=MINIMUM[library],
            reason=str(error),
        ) from error


def pyroute2(module: str = "") -> Any:
    """The netlink library, or one of its modules (``pyroute2.netlink``). See :func:`load` for errors."""
    return load("pyroute2", module)


def netaddr() -> Any:
    """The library for sets of addresses. See :func:`load` for errors."""
    return load("netaddr")


def jmespath() -> Any:
    """The query language of the users' own checks. See :func:`load` for errors."""
    return load("jmespath")


def argcomplete() -> Any:
    """What completes command lines in a shell. See :func:`load` for errors."""
    return load("argcomplete")


def yaml() -> Any:
    """The library that reads policies. See :func:`load` for errors."""
    return load("PyYAML", "yaml")


def kubernetes(module: str = "kubernetes") -> Any:
    """The official client of the Kubernetes API, one of its modules, or of ``urllib3`` below it.

    See :func:`load` for errors.
    """
    return load("kubernetes", module)


def oci(module: str = "oci") -> Any:
    """The official SDK of Oracle Cloud Infrastructure, or one of its modules. See :func:`load` for errors."""
    return load("oci", module)


def alibaba_cs(module: str = "alibabacloud_cs20151215.client") -> Any:
    """The official SDK of ACK, one of its modules, or one of those below it. See :func:`load` for errors."""
    return load("alibabacloud-cs20151215", module)


def alibaba_eflo(module: str = "alibabacloud_eflo_controller20221215.client") -> Any:
    """The official SDK of Lingjun clusters, likewise. See :func:`load` for errors."""
    return load("alibabacloud-eflo-controller20221215", module)


def json_reader() -> Callable[[bytes], Any]:
    """What reads JSON of megabytes: orjson where it is installed, a third faster, else the standard library.

    Both raise a ``ValueError`` for what is no JSON.
    """
    try:
        reader: Callable[[bytes], Any] = importlib.import_module("orjson").loads
    except ImportError:
        reader = json.loads
    return reader
