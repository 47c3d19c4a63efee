# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The command line of the lab."""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import shlex
import signal
import subprocess
import sys
import time

from . import cluster_cli, containerfile, dcb, faults, lab, plan, qemu, rdma_image
from .errors import LabError
from .image import Cache
from .progress import Progress

UNFIT = 3
"""Exit code of ``check`` on a machine that cannot run a lab."""
DESCRIPTION = """\
Virtual nodes with a real RDMA kernel, joined by rails and surrounded by what an OCI node has around it.
The cache directory is RDMA_LAB_CACHE, else rdma-k8s-lab in the user's cache directory."""


def parser() -> argparse.ArgumentParser:
    """The whole command line."""
    named = argparse.ArgumentParser(add_help=False)
    named.add_argument(
        "--name", default="default", help="which lab, when there are several (default: %(default)s)"
    )
    shaped = argparse.ArgumentParser(add_help=False)
    shaped.add_argument(
        "--nodes", type=int, default=2, metavar="N", help="how many nodes, 1 to 16 (default: 2)"
    )
    shaped.add_argument(
        "--rails", type=int, metavar="R", help="RDMA NICs of a node, 1 to 16 (default: the shape's, else 4)"
    )
    shaped.add_argument(
        "--nic", default="virtio", choices=plan.NICS, help="kind of the RDMA NICs (default: %(default)s)"
    )
    shaped.add_argument(
        "--numa", action="store_true", help="two NUMA nodes, NICs at the PCI places of a real server"
    )
    shaped.add_argument(
        "--mem",
        type=int,
        metavar="MB",
        help=f"memory of a node (default: {plan.MEMORY}, with --kube {plan.KUBE_MEMORY})",
    )
    shaped.add_argument("--kube", action="store_true", help="nodes that can join a cluster")
    shaped.add_argument(
        "--shape", metavar="NAME", help="what the metadata says: LAB.RXE.N or a shape of the table"
    )
    shaped.add_argument(
        "--driver", default="lab", choices=plan.DRIVERS, help="build of rxe (default: %(default)s)"
    )
    started = argparse.ArgumentParser(add_help=False)
    started.add_argument("--cold", action="store_true", help="boot really, instead of resuming a saved state")
    started.add_argument(
        "--base-port", type=int, metavar="P", help="node1's ssh is at P+1 (default: the first free block)"
    )
    started.add_argument(
        "--accel", default="auto", choices=("auto", "kvm", "tcg"), help="kvm only where it works"
    )

    top = argparse.ArgumentParser(prog="tests/lab", description=DESCRIPTION)
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    build = commands.add_parser("build", help="build the node image and stop")
    build.add_argument(
        "--driver", default="lab", choices=plan.DRIVERS, help="build of rxe (default: %(default)s)"
    )
    build.add_argument(
        "--fresh", action="store_true", help="take the newest kernel and packages, whatever is in the cache"
    )
    commands.add_parser(
        "check", help=f"install what a lab needs; exit code {UNFIT} and the reason where none can run"
    )
    commands.add_parser("up", parents=[named, shaped, started], help="start a lab (builds what is missing)")
    wait = commands.add_parser("wait", parents=[named], help="wait until every node is ready")
    wait.add_argument(
        "--timeout", type=float, default=lab.BOOT_TIMEOUT, metavar="S", help="seconds (default: %(default)s)"
    )
    inventory = commands.add_parser(
        "inventory", parents=[named], help="print an Ansible inventory, or write it"
    )
    inventory.add_argument("--output", type=pathlib.Path, metavar="FILE")
    inventory.add_argument("--group", default="nodes", help="group of the nodes (default: %(default)s)")
    ssh = commands.add_parser("ssh", parents=[named], help="a shell on a node, or one command")
    ssh.add_argument("node", metavar="NODE")
    ssh.add_argument("words", nargs=argparse.REMAINDER, metavar="COMMAND")
    status = commands.add_parser("status", parents=[named], help="what runs, and which faults are in force")
    status.add_argument("--json", action="store_true", help="for programs")
    fault = commands.add_parser(
        "fault",
        parents=[named],
        help="play a fault on a node, or take it back",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="faults:\n"
        + "\n".join(f"  {fault.usage:34} {fault.summary}" for fault in faults.FAULTS.values()),
    )
    fault.add_argument("node", metavar="NODE")
    fault.add_argument("fault", metavar="FAULT")
    fault.add_argument("arguments", nargs="*", metavar="ARGUMENT")
    fault.add_argument("--undo", action="store_true", help="take the fault back")
    driver = commands.add_parser("driver", parents=[named], help="change the build of rxe on running nodes")
    driver.add_argument("build", choices=plan.DRIVERS)
    lent = commands.add_parser("dcb", parents=[named], help="lend DCB to NICs of a running node")
    lent.add_argument("node", metavar="NODE")
    lent.add_argument("nics", nargs="*", metavar="NIC")
    lent.add_argument(
        "--silent", action="append", default=[], metavar="NIC", help="this one forgets what it is told"
    )
    lent.add_argument("--undo", action="store_true", help="take it back")
    built = commands.add_parser(
        "image", help="write the in-cluster image and its bill of materials, and check them"
    )
    built.add_argument("--output", type=pathlib.Path, required=True, metavar="DIRECTORY")
    built.add_argument(
        "--architecture",
        action="append",
        choices=tuple(rdma_image.build_tool.MACHINES),
        help="default: all of them",
    )
    built.add_argument(
        "--containerfile",
        choices=tuple(rdma_image.build_tool.MACHINES),
        help="build the Containerfile with Buildah too, and compare",
    )
    commands.add_parser("down", parents=[named], help="end every process of a lab")
    cycle = commands.add_parser(
        "cycle", parents=[named, shaped, started], help="up, wait, an optional command, down; with times"
    )
    cycle.add_argument(
        "words", nargs="*", metavar="COMMAND", help="run with RDMA_LAB_INVENTORY in its environment"
    )
    cluster_cli.add_parser(commands, named, started)
    selftest = commands.add_parser("selftest", help="boot two nodes and check what the lab promises")
    selftest.add_argument(
        "--cold", action="store_true", help="boot really, instead of resuming a saved state"
    )
    return top


def _spec(options: argparse.Namespace) -> plan.LabSpec:
    return plan.make_spec(
        nodes=options.nodes,
        rails=options.rails,
        nic=options.nic,
        numa=options.numa,
        mem=options.mem,
        shape=options.shape,
        driver=options.driver,
        kube=options.kube,
    )


def _up(this: lab.Lab, options: argparse.Namespace) -> None:
    state = this.up(_spec(options), base_port=options.base_port, cold=options.cold, accel=options.accel)
    how = "resumed from its saved state" if state.warm else "booting"
    print(
        f"lab {state.name}: {state.spec.nodes} node(s), {state.spec.rails} rail(s), {label(state)}, {how}; next: wait"
    )


def label(state: lab.State) -> str:
    """How results of this lab are to be labelled: which build of rxe they come from."""
    return "lab rxe" if state.spec.driver == "lab" else "stock rxe"


def _inventory(this: lab.Lab, options: argparse.Namespace) -> None:
    text = lab.inventory_text(this.state(), this.cache.key_file, options.group)
    if options.output is None:
        print(text, end="")
        return
    options.output.parent.mkdir(parents=True, exist_ok=True)
    unfinished = options.output.with_name(options.output.name + ".unfinished")
    unfinished.write_text(text, encoding="utf-8")
    unfinished.chmod(0o600)
    unfinished.rename(options.output)


def _status(this: lab.Lab, options: argparse.Namespace) -> None:
    state = this.state()
    alive = set(this.alive())
    nodes: dict[str, dict] = {}
    for node in state.nodes():
        runs = f"rdma-lab-{state.name}-node{node}" in alive
        active = json.loads(this.node_program(node, "active")) if runs else {}
        active.update(
            {path.suffix[1:]: [path.read_text()] for path in this.directory.glob(f"node{node}.rail-broken")}
        )
        nodes[f"node{node}"] = {"running": runs, "port": state.port(node), "faults": active}
    if options.json:
        print(
            json.dumps(
                {"name": state.name, "spec": state.spec.to_dict(), "accel": state.accel, "nodes": nodes},
                indent=2,
            )
        )
        return
    spec = state.spec
    print(
        f"lab {state.name}: shape {spec.shape}, {spec.rails} {spec.nic} rail(s), {label(state)}, {state.accel}"
    )
    for name, entry in nodes.items():
        active = ", ".join(" ".join([fault, *words]) for fault, words in entry["faults"].items()) or "none"
        print(
            f"  {name}: {'running' if entry['running'] else 'gone'}, ssh port {entry['port']}, faults: {active}"
        )


def _check(cache: Cache) -> int:
    try:
        qemu.check_host()
        cache.check()
        qemu.qemu_build()
    except LabError as error:
        print(f"no lab can run here: {error}")
        return UNFIT
    print("a lab can run here")
    return 0


def _cycle(this: lab.Lab, options: argparse.Namespace) -> int:
    marks = [time.monotonic()]
    code = 0
    try:
        _up(this, options)
        marks.append(time.monotonic())
        this.wait()
        marks.append(time.monotonic())
        if options.words:
            path = this.directory / "inventory.yml"
            path.write_text(lab.inventory_text(this.state(), this.cache.key_file, "nodes"), encoding="utf-8")
            code = subprocess.run(
                options.words, env={**os.environ, "RDMA_LAB_INVENTORY": str(path)}, check=False
            ).returncode
        marks.append(time.monotonic())
    finally:
        this.down()
    marks.append(time.monotonic())
    steps = ("up", "wait", "command", "down")
    for name, begin, end in zip(steps, marks, marks[1:], strict=False):
        print(f"{name:8} {end - begin:6.1f} s")
    print(f"{'total':8} {marks[-1] - marks[0]:6.1f} s")
    return code


def run(options: argparse.Namespace) -> int:
    """Carry out a parsed command line; the exit code."""
    progress = Progress()
    cache = Cache(lab.default_cache(), progress)
    if options.command == "build":
        image = cache.ensure_image(options.driver, options.fresh)
        progress.say(f"image {image.key} is ready: kernel {image.abi}, driver {image.driver}")
        return 0
    if options.command == "check":
        return _check(cache)
    if options.command == "image":
        for line in rdma_image.write(
            cache, options.output, tuple(options.architecture or rdma_image.build_tool.MACHINES)
        ):
            print(line)
        if options.containerfile:
            print(containerfile.compare(cache, options.containerfile))
        return 0
    if options.command == "selftest":
        from .selftest import run_selftest

        return run_selftest(cache, progress, cold=options.cold)
    if options.command == "cluster":
        return cluster_cli.run(options, cache, progress)
    this = lab.Lab(options.name, cache, progress)
    if options.command == "up":
        _up(this, options)
    elif options.command == "wait":
        this.wait(options.timeout)
    elif options.command == "inventory":
        _inventory(this, options)
    elif options.command == "status":
        _status(this, options)
    elif options.command == "ssh":
        words = options.words[1:] if options.words[:1] == ["--"] else options.words
        command = this.ssh_command(this.check_node(options.node), terminal=not words and sys.stdin.isatty())
        os.execvp(command[0], [*command, *words])
    elif options.command == "fault":
        node = this.check_node(options.node)
        if options.undo:
            faults.undo(this, node, options.fault)
        else:
            faults.play(this, node, options.fault, options.arguments)
    elif options.command == "driver":
        for node in this.state().nodes():
            this.node_program(node, "driver", options.build)
    elif options.command == "dcb":
        node = this.check_node(options.node)
        if options.undo:
            dcb.take_back(this, node)
        else:
            dcb.lend(this, node, options.nics, options.silent)
    elif options.command == "cycle":
        return _cycle(this, options)
    elif options.command == "down":
        ended = this.down()
        print(
            f"lab {this.name}: ended {shlex.join(ended)}"
            if ended
            else f"lab {this.name}: nothing was running"
        )
    return 0


def _terminated(number: int, _frame: object) -> None:
    """A polite request to end becomes an exception, so that what was started is ended too."""
    raise SystemExit(128 + number)


def main(arguments: list[str] | None = None) -> int:
    """Run the lab program; errors are one sentence on standard error and exit code 1."""
    options = parser().parse_args(arguments)
    signal.signal(signal.SIGTERM, _terminated)
    try:
        return run(options)
    except LabError as error:
        print(f"lab: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("lab: interrupted", file=sys.stderr)
        return 130
