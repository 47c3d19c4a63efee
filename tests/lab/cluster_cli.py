# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The command line of a cluster: ``python3 tests/lab cluster COMMAND``."""

from __future__ import annotations

import argparse
import json
import os
import time

from . import control, lab, plan
from .cluster import Cluster
from .errors import LabError
from .image import Cache
from .programs import Programs
from .progress import Progress

SIM_FAULTS = ("heartbeat", "not-ready", "prepare", "terminate", "slices", "crash", "reboot", "driver")
"""Faults of simulated nodes; ``kube/cmd/labkube/sim.go`` plays them."""
FAULTS_ANNOTATION = "rdma-lab/faults"


def add_parser(commands, named: argparse.ArgumentParser, started: argparse.ArgumentParser) -> None:
    """Add the command ``cluster`` and those below it."""
    top = commands.add_parser("cluster", help="a Kubernetes cluster on the lab's nodes")
    below = top.add_subparsers(dest="action", required=True, metavar="ACTION")
    below.add_parser("build", help="build the programs and stop")
    up = below.add_parser("up", parents=[named, started], help="start a cluster (builds what is missing)")
    up.add_argument(
        "--nodes", type=int, default=2, metavar="N", help="virtual nodes, 0 to 16 (default: %(default)s)"
    )
    up.add_argument(
        "--rails", type=int, default=4, metavar="R", help="RDMA NICs of a virtual node (default: 4)"
    )
    up.add_argument("--mem", type=int, metavar="MB", help="memory of a virtual node")
    up.add_argument(
        "--simulated", type=int, default=0, metavar="N", help="simulated nodes, 0 to 1000 (default: 0)"
    )
    up.add_argument(
        "--simulated-rails",
        type=int,
        default=16,
        metavar="R",
        help="RDMA NICs of a simulated node (default: 16)",
    )
    up.add_argument(
        "--node-grace",
        type=int,
        default=control.GRACE,
        metavar="S",
        help="seconds without a heartbeat until a node counts as gone (default: %(default)s)",
    )
    below.add_parser("down", parents=[named], help="end a cluster and its virtual nodes")
    status = below.add_parser("status", parents=[named], help="what runs")
    status.add_argument("--json", action="store_true", help="for programs")
    dranet = below.add_parser("dranet", parents=[named], help="install DRANET on the virtual nodes")
    dranet.add_argument("values", nargs="*", metavar="KEY=VALUE", help="values of its chart")
    below.add_parser(
        "image",
        parents=[named],
        help="give the virtual nodes the in-cluster image with the code as it is now",
    )
    below.add_parser(
        "agent", parents=[named], help="check the node agent on node1: what it tells, what it cannot change"
    )
    for program in ("kubectl", "helm"):
        tool = below.add_parser(program, parents=[named], help=f"{program} for the cluster")
        tool.add_argument("words", nargs=argparse.REMAINDER, metavar="ARGUMENT")
    fault = below.add_parser(
        "fault", parents=[named], help="play a fault on a simulated node, or take it back"
    )
    fault.add_argument("node", metavar="NODE")
    fault.add_argument("fault", choices=SIM_FAULTS)
    fault.add_argument("--undo", action="store_true", help="take the fault back")
    test = below.add_parser("test", help="start clusters of its own and check what this page promises")
    test.add_argument("--only", choices=("native", "nodes"), help="one half of it")


def run(options: argparse.Namespace, cache: Cache, progress: Progress) -> int:
    """Carry out one of the commands; the exit code."""
    if options.action == "build":
        return _build(cache)
    if options.action == "test":
        from .cluster_test import run_test

        return run_test(cache, progress, options.only)
    cluster = Cluster(options.name, cache, progress)
    if options.action == "up":
        _up(cluster, options)
    elif options.action == "down":
        _down(cluster)
    elif options.action == "status":
        _status(cluster, options)
    elif options.action == "dranet":
        print(f"DRANET {cluster.install_dranet(*options.values)} installed in kube-system")
    elif options.action == "image":
        print(cluster.load_image(lab.Lab(options.name, cache, progress)))
    elif options.action == "agent":
        from . import agent_test

        print(agent_test.run(cluster, lab.Lab(options.name, cache, progress)))
    elif options.action == "fault":
        _fault(cluster, options)
    else:
        words = options.words[1:] if options.words[:1] == ["--"] else options.words
        cluster.state()
        program = str(cluster.programs.path(options.action))
        os.execvpe(program, [program, *words], {**os.environ, "KUBECONFIG": str(cluster.kubeconfig)})
    return 0


def _build(cache: Cache) -> int:
    cache.claim()
    programs = Programs(cache)
    programs.ensure()
    for directory in (programs.directory, programs.driver_directory, programs.own_directory):
        seconds = (directory / "seconds").read_text(encoding="utf-8").strip()
        names = ", ".join(sorted(path.name for path in directory.iterdir() if path.name != "seconds"))
        print(f"{directory}: {names} (built in {seconds} s)")
    print(f"Kubernetes {programs.kubernetes}, DRANET {programs.dranet}")
    return 0


def _up(cluster: Cluster, options: argparse.Namespace) -> None:
    if not 0 <= options.simulated <= 1000 or not 0 <= options.simulated_rails <= 16:
        raise LabError("simulated_range", "--simulated is 0 to 1000 and --simulated-rails 0 to 16.")
    if not 0 <= options.nodes <= plan.MAX_NODES:
        raise LabError(
            "nodes_range", f"--nodes {options.nodes}: a cluster has 0 to {plan.MAX_NODES} virtual nodes."
        )
    nodes = lab.Lab(options.name, cluster.cache, cluster.progress)
    cluster.programs.ensure()
    begin = time.monotonic()
    spec = control.ClusterSpec(options.nodes, options.simulated, options.simulated_rails, options.node_grace)
    state = cluster.up(spec)
    print(f"control plane of {state.kubernetes} ready after {time.monotonic() - begin:.1f} s", flush=True)
    if options.simulated:
        print(f"{options.simulated} simulated nodes registered")
    if options.nodes:
        try:
            wishes = plan.make_spec(nodes=options.nodes, rails=options.rails, mem=options.mem, kube=True)
            nodes.up(wishes, base_port=options.base_port, cold=options.cold, accel=options.accel)
            nodes.wait()
            for node, seconds in sorted(cluster.join(nodes).items()):
                print(f"node{node} is a ready node {seconds:.1f} s later", flush=True)
        except BaseException:
            _down(cluster)
            raise
    print(
        f"cluster {cluster.name}: up after {time.monotonic() - begin:.1f} s; KUBECONFIG={cluster.kubeconfig}"
    )


def _down(cluster: Cluster) -> None:
    nodes = lab.Lab(cluster.name, cluster.cache, cluster.progress)
    ended = []
    try:
        kube = nodes.state().spec.kube
    except LabError:
        kube = False
    if kube:
        ended += nodes.down()
    ended += cluster.down()
    print(
        f"cluster {cluster.name}: ended {' '.join(ended)}"
        if ended
        else f"cluster {cluster.name}: nothing was running"
    )


def _status(cluster: Cluster, options: argparse.Namespace) -> None:
    state, alive = cluster.state(), cluster.alive()
    wanted = [part for part in control.PARTS if part != "simulator" or state.spec.simulated]
    parts = {part: part in alive for part in wanted}
    nodes = {}
    if parts["kube-apiserver"]:
        for entry in cluster.object("nodes")["items"]:
            ready = next(
                (c["status"] for c in entry["status"].get("conditions", []) if c["type"] == "Ready"), "?"
            )
            nodes[entry["metadata"]["name"]] = ready
    if options.json:
        document = {
            "name": state.name,
            "kubernetes": state.kubernetes,
            "server": cluster.plane().url(),
            "kubeconfig": str(cluster.kubeconfig),
            "audit_log": str(cluster.directory / "audit.log"),
            "parts": parts,
            "nodes": nodes,
        }
        print(json.dumps(document, indent=2))
        return
    print(f"cluster {state.name}: Kubernetes {state.kubernetes} at {cluster.plane().url()}")
    for part, runs in parts.items():
        print(f"  {part}: {'running' if runs else 'gone'}")
    ready = sum(value == "True" for value in nodes.values())
    print(f"  {ready} of {len(nodes)} nodes ready")


def _fault(cluster: Cluster, options: argparse.Namespace) -> None:
    node = cluster.object("node", options.node)
    if node["metadata"].get("labels", {}).get("rdma-lab/simulated") != "true":
        raise LabError("not_simulated", f"{options.node} is no simulated node; use fault for virtual nodes.")
    active = node["metadata"].get("annotations", {}).get(FAULTS_ANNOTATION, "")
    names = {name for name in active.split(",") if name}
    if options.undo != (options.fault in names):
        state = "not in force" if options.undo else "in force already"
        raise LabError("fault_state", f"{options.node}: the fault {options.fault} is {state}.")
    names ^= {options.fault}
    text = ",".join(sorted(names))
    cluster.kubectl("annotate", "--overwrite", "node", options.node, f"{FAULTS_ANNOTATION}={text}")
