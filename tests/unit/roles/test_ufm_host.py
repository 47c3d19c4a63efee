# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The role ufm_host: what it refuses, what it asks of the real openssl, and what it makes of the answers."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar

ROLE = Path(__file__).resolve().parents[3] / "roles/ufm_host"
PREFIX = "ufm_host_"
NAMES = ["127.0.0.1", "2001:db8::1", "ufm.example"]
GOOD = "IP:127.0.0.1,IP:2001:db8:0:0::1,DNS:ufm.example,DNS:more.example"
TOOL = pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not installed")


def read(path: str) -> Any:
    return DataLoader().load_from_file(str(ROLE / path), trusted_as_template=True)


def options() -> dict[str, Any]:
    return dict(read("meta/argument_specs.yml")["argument_specs"]["main"]["options"])


def templar(**given: Any) -> Templar:
    """Templates of the role, with variables of its name and others."""
    variables = {**read("defaults/main.yml"), **read("vars/main.yml"), "ufm_host_names": NAMES}
    mine = {key if key.startswith("_") else PREFIX + key: value for key, value in given.items()}
    return Templar(DataLoader(), variables={**variables, "inventory_hostname": "ufm-1", **mine})


def value(name: str, **given: Any) -> Any:
    found = templar(**given)
    return found.template(found.available_variables[name])


def every(tasks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Tasks, with those of blocks."""
    return [
        inner for task in tasks for inner in (task, *every(task.get("block", []) + task.get("always", [])))
    ]


FILES = sorted(path.name for path in ROLE.glob("tasks/*.yml"))
ALL = [(name, task) for name in FILES for task in every(read("tasks/" + name))]


def test_variables() -> None:
    """The specification has every variable, with its default where it has one; the page and the tasks know each."""
    defaults = read("defaults/main.yml")
    found = options()
    assert {name: entry["default"] for name, entry in found.items() if "default" in entry} == defaults
    assert [name for name, entry in found.items() if entry.get("required")] == ["ufm_host_names"]
    page = (ROLE / "README.md").read_text(encoding="utf-8")
    used = "".join(path.read_text(encoding="utf-8") for path in sorted(ROLE.glob("[tv]a*s/*.yml")))
    assert [name for name in found if "`%s`" % name not in page] == []
    assert [name for name in found if not re.search(r"\b%s\b" % name, used)] == []


def test_programs_get_words_and_never_a_shell() -> None:
    for name, task in ALL:
        assert not {"ansible.builtin.shell", "ansible.builtin.raw"} & set(task), name
        command = task.get("ansible.builtin.command")
        assert command is None or (set(command) == {"argv"} and "changed_when" in task), task["name"]


def test_the_key_is_never_shown() -> None:
    """Neither as a difference, nor as what was sent."""
    copies = [
        task
        for _name, task in ALL
        if re.search(r"/key$|key_path", str(task.get("ansible.builtin.copy", {}).get("dest")))
    ]
    assert [task["name"] for task in copies] == ["Install the key", "Bring your key"]
    for task in copies:
        assert task["no_log"] is True
        assert task["diff"] is False
        assert task["ansible.builtin.copy"]["mode"] == "0600"


# --- input


@pytest.mark.parametrize(
    "names",
    [
        ["172.16.10.10"],
        ["::1"],
        ["fd00::"],
        ["2001:db8:0:0:0:0:0:1"],
        ["ufm"],
        ["UFM-1.example.org", "10.0.0.1"],
        ["3com.example"],
        ["a" * 63 + ".example"],
    ],
)
def test_good_names(names: list[str]) -> None:
    assert value("__ufm_host_bad_names", names=names) == []


@pytest.mark.parametrize(
    "name",
    [
        "",
        "https://ufm.example",
        "172.16.10.300",
        "172.16.10",
        "172.16.10.10:443",
        "172.16.10.0/24",
        "[::1]",
        "1:2",
        "1:::2",
        "1::2::3",
        "fe80::1%eth0",
        "${UFM_ADDRESS}",
        "a,IP:1.2.3.4",
        "a\nCN = b",
        "ufm.example\n",
        "10.0.0.1\n",
        "ufm.example.",
        "-ufm",
        "ufm_1",
        "*.example",
        "a" * 64,
        "ufm .example",
    ],
)
def test_wrong_names(name: str) -> None:
    """A name goes into the request, so it must not be able to say more than a name."""
    assert value("__ufm_host_bad_names", names=["10.0.0.1", name]) == [name]


def test_names_in_one_text() -> None:
    """As ``-e ufm_host_names=...`` gives them."""
    assert value("__ufm_host_names", names="10.0.0.1, ufm") == ["10.0.0.1", "ufm"]


def refusal(**given: Any) -> str:
    """The sentence with which the input is refused; empty: it is not."""
    found = templar(**given)
    for task in read("tasks/input.yml"):
        if "ansible.builtin.assert" not in task or "__ufm_host_s" in str(task) or "__ufm_host_v" in str(task):
            continue
        condition = task["ansible.builtin.assert"]["that"]
        for entry in condition if isinstance(condition, list) else [condition]:
            if not found.evaluate_conditional(entry):
                return str(found.template(task["ansible.builtin.assert"]["fail_msg"]))
    return ""


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"names": []}, "ufm_host_names is [], expected one or more addresses and names"),
        ({"names": ["a b"]}, "; wrong: a b."),
        ({"key_file": "x"}, "one is set only"),
        ({"certificate_file": "x"}, "one is set only"),
        ({"days": 30}, "otherwise each run makes a new certificate"),
        ({"days": 0, "renew_days": -1}, "expected 1 to 3650 days"),
        ({"days": 3651}, "expected 1 to 3650 days"),
        ({"container": "-f"}, "names of letters"),
        ({"container": "ufm\n"}, "names of letters"),
        ({"service": "--all"}, "names of letters"),
        ({"key_path": "relative"}, "two paths from the root"),
        ({"key_path": "/etc/../key"}, "two paths from the root"),
        ({"key_path": "/same", "certificate_path": "/same"}, "two paths from the root"),
        ({"certificate_path": "/etc/pki/"}, "two paths from the root"),
    ],
)
def test_wrong_input(given: dict[str, Any], sentence: str) -> None:
    assert refusal() == ""
    assert sentence in refusal(**given)


@pytest.mark.parametrize(
    ("answer", "good"),
    [
        ({"stdout": "OpenSSL 3.0.19 27 Jan 2026 (Library: OpenSSL 3.0.19 27 Jan 2026)"}, True),
        ({"stdout": "OpenSSL 1.1.1k  FIPS 25 Mar 2021"}, True),
        ({"stdout": "OpenSSL 1.0.2k-fips  26 Jan 2017"}, False),
        ({"stdout": "LibreSSL 3.3.6"}, False),
        ({"stdout": "", "rc": 2, "msg": "Error executing command."}, False),
    ],
)
def test_the_version_of_openssl(answer: dict[str, Any], good: bool) -> None:
    """1.1.1 is the first that shows single extensions."""
    (task,) = [task for task in read("tasks/input.yml") if "__ufm_host_version" in task.get("vars", {})]
    found = templar(__ufm_host_openssl=answer, **task["vars"])
    assert found.evaluate_conditional(task["ansible.builtin.assert"]["that"]) is good
    assert "needs OpenSSL 1.1.1" in found.template(task["ansible.builtin.assert"]["fail_msg"])


# --- with openssl


def openssl(*words: str) -> str:
    done = subprocess.run(["openssl", *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def make(folder: Path, *words: str, names: str = GOOD, days: int = 90, stem: str = "one") -> tuple[str, str]:
    """A certificate and its key."""
    certificate, key = str(folder / (stem + ".crt")), str(folder / (stem + ".key"))
    extension = ["-addext", "subjectAltName=" + names] if names else []
    made = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", str(days), "-subj", "/CN=127.0.0.1"]
    openssl(*made, "-keyout", key, "-out", certificate, *extension, *words)
    return certificate, key


def look(certificate: str, key: str) -> list[str]:
    """What the role says of a pair: its own commands, run here, and what it makes of their answers."""
    given: dict[str, Any] = {"look_certificate": certificate, "look_key": key}
    answers: dict[str, Any] = {}
    for task in read("tasks/look.yml"):
        found = templar(**answers)
        found.available_variables = {**found.available_variables, **given}
        if "when" in task and not found.evaluate_conditional(task["when"]):
            answers[task["register"]] = {"results": [{"skipped": True, "item": name} for name in NAMES]}
            continue
        results = []
        for item in found.template(task["loop"]) if "loop" in task else [None]:
            found.available_variables = {**found.available_variables, "item": item}
            words = [str(word) for word in found.template(task["ansible.builtin.command"]["argv"])]
            done = subprocess.run(
                words, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
            )
            results.append({"item": item, "rc": done.returncode, "stdout": done.stdout})
        answers[task["register"]] = {"results": results} if "loop" in task else results[0]
    return list(value("__ufm_host_faults", **answers))


@TOOL
@pytest.mark.parametrize(
    ("given", "words", "reasons"),
    [
        ({}, [], []),
        ({"days": 20}, [], ["it ends within 30 days"]),
        ({"names": ""}, [], ["it has no subjectAltName"]),
        ({"names": "IP:127.0.0.1"}, [], ["its subjectAltName lacks 2001:db8::1, ufm.example"]),
        ({"names": "DNS:ufm.example"}, [], ["its subjectAltName lacks 127.0.0.1, 2001:db8::1"]),
        ({"names": GOOD.replace("ufm", "x")}, [], ["its subjectAltName lacks ufm.example"]),
        ({}, ["-addext", "extendedKeyUsage=serverAuth"], []),
        ({}, ["-addext", "extendedKeyUsage=clientAuth"], ["its extendedKeyUsage is not that of a server"]),
        (
            {"names": "IP:127.0.0.1", "days": 1},
            [],
            ["it ends within 30 days", "its subjectAltName lacks 2001:db8::1, ufm.example"],
        ),
    ],
)
def test_what_stays_and_what_does_not(
    tmp_path: Path, given: dict[str, Any], words: list[str], reasons: list[str]
) -> None:
    """S155, S156: a name in the subject alone is none."""
    assert look(*make(tmp_path, *words, **given)) == reasons


@TOOL
def test_a_key_that_does_not_serve(tmp_path: Path) -> None:
    """S155: UFM cannot type a passphrase."""
    certificate, key = make(tmp_path)
    assert look(certificate, make(tmp_path, stem="other")[1]) == ["the key belongs to another certificate"]
    locked = str(tmp_path / "locked.key")
    openssl("pkey", "-in", key, "-aes256", "-passout", "pass:word", "-out", locked)
    assert look(certificate, locked) == ["there is no key that can be read without a passphrase"]
    assert look(certificate, "/nowhere") == ["there is no key that can be read without a passphrase"]
    assert look("/nowhere", key) == ["there is no certificate that can be read"]
    assert look(key, key) == ["there is no certificate that can be read"]


@TOOL
def test_what_is_made_is_right(tmp_path: Path) -> None:
    """The request with the words that make a pair; the role's own judgement has nothing against it."""
    (task,) = [task for _name, task in ALL if task["name"] == "Make key and certificate"]
    found = templar(key_bits=2048, __ufm_host_stage={"path": str(tmp_path)})
    request = found.template(found.available_variables["__ufm_host_request"])
    (tmp_path / "request").write_text(request, encoding="utf-8")
    words = [str(word) for word in found.template(task["ansible.builtin.command"]["argv"])]
    openssl(*words[1:])
    certificate, key = str(tmp_path / "certificate"), str(tmp_path / "key")
    assert look(certificate, key) == []
    text = openssl("x509", "-in", certificate, "-noout", "-text")
    assert "CA:FALSE" in text
    assert "IP Address:127.0.0.1, IP Address:2001:DB8:0:0:0:0:0:1, DNS:ufm.example" in text
    assert openssl("verify", "-x509_strict", "-purpose", "sslserver", "-CAfile", certificate, certificate)
    assert (tmp_path / "key").stat().st_mode & 0o077 == 0
