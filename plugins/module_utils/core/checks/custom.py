# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Checks of the user: JMESPath expressions over the view of a node. Private to rdma.k8s: it may change any time."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from ... import deps
from ..errors import RdmaError
from ..finding import CheckInfo
from .context import Node
from .policy import CustomCheck
from .registry import Outcome, failed, passed, unknown


@dataclass(frozen=True)
class CompiledCheck:
    """A check of the user, ready to run."""

    info: CheckInfo
    expression: Any

    def run(self, node: Node) -> Outcome:
        """``pass`` for true, ``fail`` for false, ``unknown`` for null; another value is a mistake in the expression."""
        jmespath = deps.jmespath()
        try:
            value = self.expression.search(node.view)
        except (jmespath.exceptions.JMESPathError, ArithmeticError, TypeError, ValueError) as error:
            return unknown(
                "The expression cannot be evaluated on this node: %s" % " ".join(str(error).split())
            )
        if value is True:
            return passed("The expression holds.")
        if value is False:
            return failed("The expression does not hold.", expected="true", observed="false")
        if value is None:
            return unknown("The expression gives null: a value that it reads is not known.")
        return unknown("The expression must give true or false, it gives %s." % type(value).__name__)


def compile_checks(checks: Iterable[CustomCheck]) -> list[CompiledCheck]:
    """Compile the expressions, all of them before anything is judged.

    :raises RdmaError: ``expression_invalid``.
    """
    return [_compile(check) for check in checks]


def _compile(check: CustomCheck) -> CompiledCheck:
    jmespath = deps.jmespath()
    try:
        expression = jmespath.compile(check.expression)
    except (jmespath.exceptions.JMESPathError, RecursionError) as error:
        raise RdmaError(
            "expression_invalid",
            "The expression of %s is not JMESPath: %s" % (check.id, " ".join(str(error).split())),
            hint="Try it with the view of a node: 'rdma-k8s explain --view --node NAME'.",
            check=check.id,
        ) from error
    area = check.id.split("-")[0]
    return CompiledCheck(CheckInfo(check.id, check.title, check.severity, area, check.hint), expression)
