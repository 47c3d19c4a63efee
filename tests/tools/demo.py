# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`make demo`: the main job of the product on the example fleet, then on the machine that this runs on.

Each step is a command that a user would type, and is printed as such. Ends with exit code 0 when every step did its
work; that a fleet has faults is no failure of the demo.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import tree
from own_command import command_line

REPORTS = Path("build", "report")
HERE = REPORTS / "this-machine"
LOCAL_SUBSETS = ("kernel", "rdma", "links", "routes", "pci", "oca", "firewall")
"""All but the metadata service: it is asked over the network, and a demo stays on its machine."""
OTHER_RANGE = "10.192.0.0/12"
FLEET, POLICY = "examples/fleet", "examples/policy.yml"
PREFLIGHT_ENDS = (0, 2)  # 2: the play ended failed, since something is not as it must be


class StepFailedError(Exception):
    """A step of the demo did not do its work."""


def say(text: str = "") -> None:
    """Print a line now, before the next command does."""
    print(text, flush=True)


def headline(text: str) -> None:
    """Print what comes next."""
    say(f"\n{text}\n{'=' * len(text)}")


def run(
    shown: str,
    command: list[str],
    env: dict[str, str],
    ends: tuple[int, ...] = (0,),
    keep: Path | None = None,
) -> str:
    """Print a command as a user would type it, run it, print its output (or keep it in a file)."""
    say(f"$ {shown}")
    done = subprocess.run(
        command,
        cwd=tree.ROOT,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )
    output = done.stdout.decode("utf-8", "replace")
    if keep is None or done.returncode not in ends:
        say(output.rstrip())
    else:
        (tree.ROOT / keep).write_text(output)
    if done.returncode not in ends:
        raise StepFailedError(f"The command ended with exit code {done.returncode}, expected one of {ends}.")
    return output


def judge_the_fleet(command: list[str], env: dict[str, str]) -> None:
    """The recorded fleet: summary on the screen, all report formats in files."""
    headline("1. Judge the example fleet (20 made-up nodes with a handful of faults)")
    words = ["report", FLEET, "--policy", POLICY, "--dir", str(REPORTS)]
    run(f"rdma-k8s {' '.join(words)}", [*command, *words], env)


def plan_another_range(command: list[str], env: dict[str, str]) -> None:
    """The same fleet in another child range: every child, and every conflict."""
    headline(f"2. Plan another child range for it: {OTHER_RANGE}")
    words = ["plan", FLEET, "--policy", POLICY, "--range", OTHER_RANGE]
    plan = REPORTS / "plan.csv"
    run(
        f"rdma-k8s {' '.join(words)} --format csv > {plan}",
        [*command, *words, "--format", "csv"],
        env,
        keep=plan,
    )
    lines = run(
        f"rdma-k8s {' '.join(words)}", [*command, *words], env, keep=REPORTS / "plan.txt"
    ).splitlines()
    end = next((number for number, line in enumerate(lines) if line.startswith("Child range")), len(lines))
    say("\n".join(lines[:5]))
    say(f"... {max(end - 5, 0)} lines more in {REPORTS / 'plan.txt'}\n")
    say("\n".join(lines[end:]))


def explain_one_verdict(command: list[str], env: dict[str, str]) -> None:
    """One verdict, step by step, and whose address something is."""
    headline("3. Ask why, and whose address that is")
    words = ["explain", "RDMA-OCA-012", "--node", "gpu-04", "--snapshots", FLEET, "--policy", POLICY]
    lines = run(
        f"rdma-k8s {' '.join(words)}", [*command, *words], env, keep=REPORTS / "explain.txt"
    ).splitlines()
    say("\n".join(lines[:24]))
    if len(lines) > 24:
        say(f"... {len(lines) - 24} lines more in {REPORTS / 'explain.txt'}")
    words = ["where", "10.208.173.23", "--snapshots", FLEET, "--policy", POLICY]
    run(f"rdma-k8s {' '.join(words)}", [*command, *words], env)


def judge_this_machine() -> None:
    """The real thing: this machine's sysfs, netlink and kernel, through the playbook that users run."""
    headline("4. Judge this machine: its real sysfs, netlink and kernel")
    words = [
        "-i",
        "this-machine,",
        "-c",
        "local",
        "-e",
        f"subsets={','.join(LOCAL_SUBSETS)}",
        "-e",
        f"report_dir={HERE}",
        "-e",
        f"record={HERE / 'recorded'}",
    ]
    env = {
        **tree.environment(),
        "ANSIBLE_PYTHON_INTERPRETER": sys.executable,
        "ANSIBLE_LOCALHOST_WARNING": "False",
        "ANSIBLE_STDOUT_CALLBACK": "default",
        "ANSIBLE_DISPLAY_SKIPPED_HOSTS": "False",
    }
    program = shutil.which("ansible-playbook", path=env["PATH"]) or "ansible-playbook"
    run(
        f"ansible-playbook rdma.k8s.preflight {' '.join(words)}",
        [program, "rdma.k8s.preflight", *words],
        env,
        PREFLIGHT_ENDS,
        keep=HERE / "ansible.log",
    )
    result = json.loads((tree.ROOT / HERE / "result.json").read_text())
    snapshot = json.loads(next((tree.ROOT / HERE / "recorded").glob("*.json")).read_text())
    say(what_it_has(snapshot))
    counts: dict[str, int] = {}
    for finding in result["findings"]:
        counts[finding["status"]] = counts.get(finding["status"], 0) + 1
    said = ", ".join(
        f"{counts[name]} {name}" for name in ("fail", "warn", "unknown", "skip", "pass") if name in counts
    )
    say(f"Results of {len(result['checks'])} checks: {said}.")


def what_it_has(snapshot: dict[str, object]) -> str:
    """One honest sentence about the machine, from its snapshot."""
    if "unreachable" in snapshot:
        return f"Nothing could be gathered from this machine: {snapshot['unreachable']}"
    host = snapshot.get("host") or {}
    assert isinstance(host, dict)
    kernel = f"Kernel {host.get('kernel', 'unknown')}, "
    devices, links = snapshot.get("devices"), snapshot.get("links")
    if devices is None:
        return kernel + "and whether it has RDMA devices could not be read."
    count = len(links) if isinstance(links, list) else -1
    interfaces = (
        f"{count} network interface{'' if count == 1 else 's'}" if count >= 0 else "interfaces not readable"
    )
    if not devices:
        return f"{kernel}{interfaces}. No RDMA devices here."
    assert isinstance(devices, list)
    names = ", ".join(str(device["name"]) for device in devices[:6]) + (" ..." if len(devices) > 6 else "")
    return f"{kernel}{interfaces}, {len(devices)} RDMA devices: {names}."


def files() -> None:
    """Say where everything is; a report that is missing or empty is a failure."""
    headline("Files")
    wanted = [
        REPORTS / name for name in ("report.html", "report.md", "result.json", "junit.xml", "rdma_k8s.prom")
    ]
    wanted += [REPORTS / "plan.csv", HERE / "report.html", HERE / "result.json"]
    for path in wanted:
        place = tree.ROOT / path
        if not place.is_file() or not place.stat().st_size:
            raise StepFailedError(f"{path} was not written.")
        say(f"  {path}  ({place.stat().st_size // 1024 + 1} kB)")
    say(f"\nOpen {tree.ROOT / REPORTS / 'report.html'} in a browser.")


def main() -> int:
    """Run the demo from a clean report folder."""
    started = time.monotonic()
    shutil.rmtree(tree.ROOT / REPORTS, ignore_errors=True)
    (tree.ROOT / HERE).mkdir(parents=True)
    os.chdir(tree.ROOT)
    tree.sync()
    command, env = command_line()
    try:
        judge_the_fleet(command, env)
        plan_another_range(command, env)
        explain_one_verdict(command, env)
        judge_this_machine()
        files()
    except StepFailedError as failure:
        print(f"\ndemo: {failure}", file=sys.stderr)
        return 1
    say(f"Done in {time.monotonic() - started:.0f} s.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
