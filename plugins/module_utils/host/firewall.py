# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which packet filter rules decide about RoCE v2, UDP port 4791. Private to rdma.k8s: it may change any time.

A packet of that kind walks through each base chain: a rule matches it always, never, or perhaps (its address, interface
or connection state decides). The first rule that always matches and ends the walk decides, else the chain's policy.
"""

from __future__ import annotations

from typing import Optional

from ..core.snapshot import FirewallRule
from .records import ChainRecord, FilterRecord, PacketRuleRecord

ALWAYS, PERHAPS, NEVER = "always", "perhaps", "never"
_DROPS = ("drop", "reject")
# Not forward: a child of the IPvlan type does not go through the host, and its policy is often to drop.
_HOOKS = ("prerouting", "input", "output", "postrouting", "ingress", "egress")
_ENDS = ("accept", "queue", "stolen", *_DROPS)
_DEEPEST = 16  # the kernel's own limit of jumps
MOST_STEPS = 20000

ChainKey = tuple[str, str, str]


def decisions(answers: FilterRecord) -> Optional[tuple[FirewallRule, ...]]:
    """What drops RoCE v2, and the rules that name its port, by base chain in the order of the walk.

    A rule that matches perhaps is told only when it names the port: a drop of invalid connections is not about RoCE.
    ``None``: a walk has more than 20000 steps.
    """
    rules: dict[ChainKey, list[PacketRuleRecord]] = {}
    for rule in answers.rules:
        rules.setdefault((rule.family, rule.table, rule.chain), []).append(rule)
    found: list[FirewallRule] = []
    for chain in sorted(answers.chains, key=lambda entry: (entry.hook, entry.priority)):
        if chain.hook in _HOOKS:
            walk = _Walk(chain, rules)
            found += walk.decide()
            if walk.steps > MOST_STEPS:
                return None
    return tuple(found)


class _Walk:
    def __init__(self, chain: ChainRecord, rules: dict[ChainKey, list[PacketRuleRecord]]) -> None:
        self.base = chain
        self.rules = rules
        self.found: list[FirewallRule] = []
        self.steps = 0

    def decide(self) -> list[FirewallRule]:
        if self._run(self.base.name, True, 0) == "" and self.base.policy in _DROPS:
            self._tell(self.base.name, self.base.policy, "policy %s" % self.base.policy)
        return self.found

    def _tell(self, chain: str, verdict: str, text: str) -> None:
        self.found.append(
            FirewallRule(self.base.family, self.base.table, chain, self.base.hook, verdict, text)
        )

    def _run(self, chain: str, certain: bool, depth: int) -> str:
        """Walk through a chain: the verdict that surely ends the walk, or empty: the caller goes on.

        :param certain: whether the packet surely comes here.
        """
        for rule in self.rules.get((self.base.family, self.base.table, chain), []):
            self.steps += 1
            if rule.match == NEVER or self.steps > MOST_STEPS:
                continue
            always = certain and rule.match == ALWAYS
            if rule.verdict in _ENDS:
                if (always and rule.verdict in _DROPS) or rule.names_port:
                    self._tell(
                        chain, rule.verdict if always or rule.verdict in _DROPS else "perhaps", rule.text
                    )
                if always:
                    return rule.verdict
            elif rule.verdict in ("jump", "goto") and depth < _DEEPEST:
                ended = self._run(rule.target, always, depth + 1)
                if ended:
                    return ended
                if always and rule.verdict == "goto":
                    break  # what follows a goto is not reached; the caller of this chain goes on
            elif rule.verdict == "return" and always:
                break
        return ""
