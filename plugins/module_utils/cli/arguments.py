# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The arguments of all commands, without their code. Private to rdma.k8s: it may change with any release."""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Sequence
from typing import NoReturn, Optional

from ..core.errors import RdmaError
from ..core.finding import ERROR, SEVERITIES
from ..version import VERSION
from .near import did_you_mean
from .terminal import Terminal

COMMANDS = {
    "report": "judge recorded snapshots, or read a result document; print what is wrong, write reports",
    "diff": "what is new, fixed or flapping between two or more results",
    "plan": "parents, children, tables and rules of all nodes for a child range, and every conflict",
    "explain": "how a check comes to its verdict: inputs, formula, steps",
    "where": "whose address is this; which addresses has this node or NIC",
    "lint": "manifests against the rules for RDMA workloads: what cannot work, and on which line",
    "bundle": "one archive with redacted snapshots, policy and result, for support",
    "checks": "list the catalogue of checks",
    "certificate": "issue a dated certificate of a node's conformance, or verify one",
}
TARGETS = ("oke_dranet", "spiderpool_sriov", "ack_lingjun")
FORMATS = ("json", "junit", "markdown", "textfile", "html")
"""Names of the report formats; the core refuses one that it does not have."""

_EXIT_CODES = """\
exit codes:
  0    good, or nothing was asked for that could be bad
  1    internal error, or the output could not be written
  2    wrong usage or bad input; one sentence on standard error says what and what to do
  3    with --exit-code --strict: something is unknown (report, lint), a node tells nothing
       any more (diff)
  4    with --exit-code: a failure at or above the threshold (report, lint), a new failure
       (diff), a conflict (plan)
  130  interrupted, 141 the reader of the output went away
"""
_SOURCE = "directory of recorded snapshots, one snapshot, or a bundle"


class _Parser(argparse.ArgumentParser):
    """Errors as :class:`RdmaError`, help to our own stream, no abbreviations of options."""

    terminal: Optional[Terminal] = None

    def error(self, message: str) -> NoReturn:
        text = message[:1].upper() + message[1:]
        hint = "See '%s --help'." % self.prog
        raise RdmaError("usage", text if text.endswith((".", "?")) else text + ".", hint=hint)

    def print_help(self, file: object = None) -> None:
        if self.terminal is not None:
            self.terminal.write(self.format_help())


class _Version(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, *_arguments: object) -> NoReturn:
        if isinstance(parser, _Parser) and parser.terminal is not None:
            parser.terminal.lines("rdma-k8s %s" % VERSION)
        raise SystemExit(0)


def parse(argv: Sequence[str], terminal: Terminal) -> Optional[argparse.Namespace]:
    """The arguments of a command line; ``None`` when help or version was asked for and printed.

    :raises RdmaError: ``usage``, ``command_unknown``.
    """
    _Parser.terminal = terminal
    words = [word for word in argv[:1] if not word.startswith("-")]
    if words and words[0] not in COMMANDS:
        raise RdmaError(
            "command_unknown",
            "There is no command %r%s" % (words[0], did_you_mean(words[0], COMMANDS)),
            hint="Commands: %s." % ", ".join(COMMANDS),
        )
    parser = build_parser()
    if not argv:
        parser.print_help()
        return None
    try:
        return parser.parse_args(argv)
    except SystemExit:  # argparse has answered --help or --version
        return None


def build_parser() -> _Parser:
    """The parser of all commands."""
    parser = _Parser(
        prog="rdma-k8s",
        description="Judge, plan and explain the RDMA side of Kubernetes nodes, from recorded snapshots.",
        epilog=_EXIT_CODES + "\n'rdma-k8s COMMAND --help' tells more about a command.",
        formatter_class=_formatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True, title="commands")
    for name, build in _BUILDERS.items():
        help_text = COMMANDS[name]
        command = commands.add_parser(
            name,
            help=help_text,
            description=help_text[:1].upper() + help_text[1:] + ".",
            formatter_class=_formatter,
            allow_abbrev=False,
        )
        build(command)
    return parser


def _formatter(prog: str) -> argparse.HelpFormatter:
    return argparse.RawDescriptionHelpFormatter(prog, max_help_position=30, width=96)


def _report(command: argparse.ArgumentParser) -> None:
    command.epilog = (
        "examples:\n"
        "  rdma-k8s report recorded/ --policy policy.yml\n"
        "  rdma-k8s report recorded/ --set pod_cidrs=10.244.0.0/16 --dir build/report\n"
        "  rdma-k8s report recorded/ --exit-code --strict        in CI\n"
        "  rdma-k8s report build/report/result.json --format markdown\n"
    )
    command.add_argument("source", metavar="SOURCE", help=_SOURCE + ", or a result document (result.json)")
    _policy(command)
    _selection(command)
    output = command.add_argument_group("output")
    output.add_argument(
        "--dir", metavar="DIR", help="write report files there, all formats unless --format names some"
    )
    output.add_argument(
        "--format",
        metavar="NAMES",
        help="%s, separated by commas; without --dir the one format goes to standard output, in place of the summary"
        % ", ".join(FORMATS),
    )
    output.add_argument("--no-summary", action="store_true", help="print no summary")
    _exit_code(command, "4 when a check fails at or above the threshold, 3 with --strict when one is unknown")
    _threshold(command, "what is unknown counts, too")


def _diff(command: argparse.ArgumentParser) -> None:
    command.epilog = (
        "examples:\n"
        "  rdma-k8s diff yesterday/result.json today/result.json\n"
        "  rdma-k8s diff monday.json tuesday.json wednesday.json --exit-code\n"
    )
    command.add_argument("old", metavar="OLD", help="result document, bundle, or recorded snapshots")
    command.add_argument("new", metavar="NEW", help="the same, from later")
    command.add_argument(
        "more", metavar="MORE", nargs="*", help="still later ones; what goes back and forth is flapping"
    )
    _policy(command, "for sources that are not judged yet: ")
    _text_or_json(command)
    _exit_code(command, "4 when something fails at or above the threshold that did not fail before")
    _threshold(command, "nodes that told something before and nothing now count, too")


def _plan(command: argparse.ArgumentParser) -> None:
    command.epilog = (
        "A file for --nodes has one node a line: NAME ADDRESS [SUBNET], separated by spaces or commas.\n"
        "SUBNET is that of the node's primary VNIC; --subnet gives it for all nodes. '-' reads from\n"
        "standard input; '#' begins a comment.\n\n"
        "examples:\n"
        "  rdma-k8s plan recorded/ --range 10.192.0.0/14\n"
        "  rdma-k8s plan --nodes nodes.txt --subnet 10.140.64.0/19 --format csv > plan.csv\n"
        "  rdma-k8s plan --subnet 10.140.64.0/19 --range 10.208.0.0/15      does it fit?\n"
        "  rdma-k8s plan recorded/ --networks networks.json                 beside the cluster's networks?\n"
    )
    command.add_argument("source", metavar="SNAPSHOTS", nargs="?", help=_SOURCE)
    command.add_argument("--nodes", metavar="FILE", help="a list of nodes in place of snapshots")
    command.add_argument("--subnet", metavar="PREFIX", help="subnet of the primary VNICs")
    command.add_argument("--range", metavar="PREFIX", help="child range (default: that of the policy)")
    command.add_argument(
        "--oca-network", metavar="PREFIX", help="RDMA network of the agent (default: as on the node)"
    )
    command.add_argument(
        "--nics", metavar="N", help="RDMA NICs of each node, 1 to 16 (default: as on the node, else 16)"
    )
    command.add_argument(
        "--networks",
        metavar="FILE",
        help="networks around the cluster, as oke_network_info returned them (JSON)",
    )
    _policy(command)
    command.add_argument("--format", choices=("text", "json", "csv"), default="text", help="default: text")
    command.add_argument(
        "--summary",
        action="store_true",
        help="only capacity, conflicts and free ranges, no row for each child",
    )
    _exit_code(command, "4 when there is a conflict, or a NIC gets no child")


def _explain(command: argparse.ArgumentParser) -> None:
    command.epilog = (
        "examples:\n"
        "  rdma-k8s explain RDMA-RANGE-013                          what the check is\n"
        "  rdma-k8s explain RDMA-RANGE-013 --node gpu-7 --snapshots recorded/\n"
        "  rdma-k8s explain --view --node gpu-7 --snapshots recorded/    what own checks can read\n"
    )
    check = command.add_argument(
        "check", metavar="CHECK", nargs="?", help="id of a check, such as RDMA-RANGE-013"
    )
    check.completer = _check_ids  # type: ignore[attr-defined]  # where argcomplete looks for it
    command.add_argument("--node", metavar="NAME", help="explain the verdict on this node")
    command.add_argument(
        "--view", action="store_true", help="print what a JMESPath expression of an own check sees, as JSON"
    )
    _snapshots(command)
    _policy(command)


def _where(command: argparse.ArgumentParser) -> None:
    command.epilog = (
        "examples:\n"
        "  rdma-k8s where 10.209.237.19 --snapshots recorded/\n"
        "  rdma-k8s where gpu-7 --snapshots recorded/\n"
        "  rdma-k8s where gpu-7/rdma15 --snapshots recorded/\n"
    )
    command.add_argument(
        "what", metavar="ADDRESS|NODE[/NIC]", help="an IP address, a node, or a NIC of a node"
    )
    _snapshots(command)
    _policy(command)
    _text_or_json(command)


def _lint(command: argparse.ArgumentParser) -> None:
    command.epilog = (
        "examples:\n"
        "  rdma-k8s lint manifests/ --exit-code                       in CI\n"
        "  helm template chart | rdma-k8s lint -\n"
        "  kubectl get jobs,resourceclaimtemplates -A -o json | rdma-k8s lint - --complete\n"
        "  rdma-k8s lint manifests/ --format sarif --output lint.sarif\n\n"
        "A waiver is a comment above a field, '# rdma-k8s: waive RDMA-WL-010 REASON', or an\n"
        "annotation of the object, 'rdma-k8s/waive-RDMA-WL-010: REASON'.\n"
    )
    command.add_argument(
        "paths",
        metavar="PATH",
        nargs="+",
        help="a manifest (YAML or JSON), a directory with *.yml, *.yaml and *.json, or '-' for standard input",
    )
    command.add_argument(
        "--exclude",
        metavar="PATTERN",
        action="append",
        default=[],
        help="leave out files and directories like this, such as '*/templates'; may be repeated",
    )
    rules = command.add_argument_group("rules")
    for name, help_text in (("--select", "only rules like this"), ("--ignore", "leave out rules like this")):
        rules.add_argument(
            name,
            metavar="PATTERN",
            action="append",
            default=[],
            help=help_text + ", such as 'RDMA-WL-*'; may be repeated",
        )
    rules.add_argument(
        "--target", choices=TARGETS, help="what the cluster runs (default: told by what an object asks for)"
    )
    rules.add_argument("--shape", metavar="NAME", help="shape of the nodes, such as BM.GPU.H100.8")
    rules.add_argument(
        "--option",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        help="what no manifest tells, such as memlock_unlimited=true; may be repeated",
    )
    rules.add_argument(
        "--complete",
        action="store_true",
        help="the manifests are all that exists: what they name and do not hold is missing",
    )
    output = command.add_argument_group("output")
    output.add_argument(
        "--format",
        choices=("text", "json", "sarif", "result"),
        default="text",
        help="default: text; 'result' is a result document for 'rdma-k8s report'",
    )
    output.add_argument(
        "--output",
        metavar="FILE",
        help="write the format there; the text goes to standard output all the same",
    )
    output.add_argument(
        "--docs", metavar="ADDRESS", default="", help="where the pages of the rules are, for links in SARIF"
    )
    _exit_code(command, "4 when a rule fails at or above the threshold, 3 with --strict when one is unknown")
    _threshold(command, "what is unknown counts, too, and that no rule had an object to look at")


def _bundle(command: argparse.ArgumentParser) -> None:
    command.epilog = (
        "OCIDs are shortened and values that look like secrets removed; names, addresses and PCI\n"
        "places stay, since without them nothing can be replayed. Look into the archive before you\n"
        "send it. 'rdma-k8s report FILE.tar.gz' replays it.\n"
    )
    command.add_argument("source", metavar="SNAPSHOTS", help=_SOURCE)
    command.add_argument(
        "--output", metavar="FILE.tar.gz", required=True, help="the archive to write, mode 0600"
    )
    command.add_argument("--result", metavar="FILE", help="the result document that the question is about")
    _policy(command)


def _checks(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "pattern", metavar="PATTERN", nargs="?", help="only ids like this, such as 'RDMA-RANGE-*'"
    ).completer = _check_ids  # type: ignore[attr-defined]  # where argcomplete looks for it
    _text_or_json(command)


def _certificate(command: argparse.ArgumentParser) -> None:
    command.epilog = (
        "issue writes one file for each node from recorded snapshots, result documents, or both: where\n"
        "two judged the same check, the later one counts. verify ends with 4 when something stands\n"
        "against a certificate; with --snapshots it also judges the recorded nodes again.\n\n"
        "examples:\n"
        "  rdma-k8s certificate issue recorded/ --policy policy.yml --output certificates\n"
        "  rdma-k8s certificate verify certificates/gpu-7.certificate.json\n"
        "  rdma-k8s certificate verify FILE --snapshots recorded/ --policy policy.yml    judge again\n"
    )
    command.add_argument("action", choices=("issue", "verify"), help="what to do")
    command.add_argument(
        "files", metavar="FILE", nargs="+", help="issue: snapshots or results; verify: certificates"
    )
    issue = command.add_argument_group("issue")
    issue.add_argument("--output", metavar="DIR", help="write NODE.certificate.json there")
    issue.add_argument(
        "--node", metavar="NAME", action="append", default=[], help="only this node; may be repeated"
    )
    issue.add_argument(
        "--days", metavar="N", default="0", help="how long it is valid (default: 0, without an end)"
    )
    _exit_code(issue, "4 when a node is not conformant, 3 when one could not be told")
    verify = command.add_argument_group("verify")
    verify.add_argument("--snapshots", metavar="SOURCE", help=_SOURCE + ", to judge again")
    _policy(command, "for snapshots: ")


def _check_ids(**_asked: object) -> list[str]:
    """What completion offers for a check. Imported here: a plan must not wait for the checks."""
    checks = importlib.import_module(".checks", __package__)
    return [info.id for info, _scope in checks.everything()]


_BUILDERS = {
    "report": _report,
    "diff": _diff,
    "plan": _plan,
    "explain": _explain,
    "where": _where,
    "lint": _lint,
    "bundle": _bundle,
    "checks": _checks,
    "certificate": _certificate,
}


def _policy(command: argparse.ArgumentParser, prefix: str = "") -> None:
    group = command.add_argument_group("policy")
    group.add_argument("--policy", metavar="FILE", help=prefix + "YAML file with the wished state")
    group.add_argument(
        "--set",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        help=prefix + "one setting of the policy, laid over the file; lists with commas; may be repeated",
    )


def _selection(command: argparse.ArgumentParser) -> None:
    for name, help_text in (
        ("--only", "judge only checks like this"),
        ("--skip", "leave out checks like this"),
    ):
        command.add_argument(
            name,
            metavar="PATTERN",
            action="append",
            default=[],
            help=help_text + ", such as 'RDMA-NODE-*'; may be repeated",
        )


def _snapshots(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--snapshots",
        metavar="SOURCE",
        help=_SOURCE + " (default: $RDMA_K8S_SNAPSHOTS, else the directory 'snapshots')",
    )


def _text_or_json(command: argparse.ArgumentParser) -> None:
    command.add_argument("--format", choices=("text", "json"), default="text", help="default: text")


def _exit_code(command: argparse._ActionsContainer, meaning: str) -> None:
    command.add_argument(
        "--exit-code", action="store_true", help="end with %s; without it such a run ends with 0" % meaning
    )


def _threshold(command: argparse.ArgumentParser, strict: str) -> None:
    command.add_argument(
        "--threshold",
        choices=SEVERITIES,
        help="with --exit-code: the lowest severity that counts (default: %s)" % ERROR,
    )
    command.add_argument("--strict", action="store_true", help="with --exit-code: %s (exit code 3)" % strict)
