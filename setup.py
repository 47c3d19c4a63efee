# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Package plugins/module_utils under the name rdma_k8s; all else is in pyproject.toml.

The folders have no __init__.py (Ansible wants none), so they are listed here, each as a namespace package.
"""

from __future__ import annotations

from setuptools import find_namespace_packages, setup

HOME = "plugins/module_utils"

setup(
    package_dir={"rdma_k8s": HOME},
    packages=["rdma_k8s", *("rdma_k8s." + name for name in find_namespace_packages(HOME))],
)
