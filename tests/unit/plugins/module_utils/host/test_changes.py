# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Changes of a node and their undo: exact, recorded before they are made, repaired after a kill at any moment."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import signal
import stat
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.rdma.k8s.plugins.module_utils.core.errors import RdmaError
from ansible_collections.rdma.k8s.plugins.module_utils.host import changes, edits, store, undo
from ansible_collections.rdma.k8s.plugins.module_utils.host.changes import Changes
from ansible_collections.rdma.k8s.plugins.module_utils.host.files import Root

CONF = "/etc/modprobe.d/ib_core.conf"
TEXT = "options ib_core netns_mode=1\n"


@pytest.fixture
def host(tmp_path: Path) -> Path:
    (tmp_path / "etc/modprobe.d").mkdir(parents=True)
    return tmp_path


def tree(top: Path) -> dict[str, tuple[int, Any]]:
    """Everything below a directory but our own store: mode, and content of files."""
    found = {}
    for path in sorted(top.rglob("*")):
        name = "/" + str(path.relative_to(top))
        if name.startswith("/var"):
            continue
        content = os.readlink(path) if path.is_symlink() else path.read_bytes() if path.is_file() else None
        found[name] = (stat.S_IMODE(path.lstat().st_mode), content)
    return found


def change(host: Path, act: Callable[[Changes], object], check_mode: bool = False) -> dict[str, Any]:
    with Changes(Root(str(host)), "some_module", check_mode) as made:
        act(made)
    return made.result()


def write(made: Changes) -> None:
    made.file(CONF, TEXT)


def test_a_file_is_made_once_and_check_mode_says_the_same(host: Path) -> None:
    foreseen = change(host, write, check_mode=True)
    assert not (host / CONF[1:]).exists()
    assert not (host / "var").exists()
    done = change(host, write)
    assert done == foreseen
    assert done == {
        "changed": True,
        "actions": ["write " + CONF],
        "diff": [
            {
                "before_header": CONF + " (before)",
                "after_header": CONF + " (after)",
                "before": "",
                "after": TEXT,
            }
        ],
    }
    assert (host / CONF[1:]).read_text() == TEXT
    assert stat.S_IMODE((host / CONF[1:]).stat().st_mode) == 0o644
    before = tree(host)
    assert change(host, write) == {"changed": False, "actions": [], "diff": []}
    assert tree(host) == before


def test_an_existing_file_keeps_its_owner_and_gets_the_mode(host: Path) -> None:
    place = host / CONF[1:]
    place.write_text("# mine\n")
    place.chmod(0o600)
    if os.geteuid() == 0:
        os.chown(place, 1234, 2345)
    owner = (place.stat().st_uid, place.stat().st_gid)
    assert change(host, write)["actions"] == ["change " + CONF]
    assert (place.stat().st_uid, place.stat().st_gid) == owner
    assert stat.S_IMODE(place.stat().st_mode) == 0o644
    assert [each.outcome for each in undo.undo(Root(str(host)))] == ["restored"]
    assert place.read_text() == "# mine\n"
    assert stat.S_IMODE(place.stat().st_mode) == 0o600
    assert (place.stat().st_uid, place.stat().st_gid) == owner


def test_a_mode_alone_is_a_change(host: Path) -> None:
    (host / CONF[1:]).write_text(TEXT)
    (host / CONF[1:]).chmod(0o666)
    assert change(host, write)["changed"]
    assert stat.S_IMODE((host / CONF[1:]).stat().st_mode) == 0o644


def test_a_link_stands_for_its_target(host: Path) -> None:
    (host / "etc/real").mkdir()
    (host / "etc/real/ib.conf").write_text("old\n")
    (host / CONF[1:]).symlink_to("/etc/real/ib.conf")
    change(host, write)
    assert (host / CONF[1:]).is_symlink()
    assert (host / "etc/real/ib.conf").read_text() == TEXT


def test_a_file_is_removed_and_comes_back(host: Path) -> None:
    place = host / CONF[1:]
    place.write_bytes(b"\xff not text\n")
    before = tree(host)
    assert change(host, lambda made: made.file(CONF, None))["actions"] == ["remove " + CONF]
    assert not place.exists()
    assert change(host, lambda made: made.file(CONF, None))["changed"] is False
    undo.undo(Root(str(host)))
    assert tree(host) == before


def test_directories_on_the_way_are_made_and_undone(host: Path) -> None:
    before = tree(host)
    change(host, lambda made: made.file("/etc/a/b/c.conf", "x\n"))
    assert stat.S_IMODE((host / "etc/a/b").stat().st_mode) == 0o755
    outcomes = undo.undo(Root(str(host)))
    assert [(each.record.kind, each.outcome) for each in outcomes] == [
        ("file", "restored"),
        ("directory", "restored"),
        ("directory", "restored"),
    ]
    assert tree(host) == before
    assert store.records(Root(str(host))) == []


def test_a_directory_in_use_stays_and_is_undone_later(host: Path) -> None:
    change(host, lambda made: made.directory("/etc/a", 0o700))
    assert stat.S_IMODE((host / "etc/a").stat().st_mode) == 0o700
    (host / "etc/a/other").write_text("not ours\n")
    assert [each.outcome for each in undo.undo(Root(str(host)))] == ["kept"]
    (host / "etc/a/other").unlink()
    assert [each.outcome for each in undo.undo(Root(str(host)))] == ["restored"]
    assert not (host / "etc/a").exists()


def test_check_mode_foresees_which_directories_can_go(host: Path) -> None:
    """A directory goes when all that is in it goes before."""
    change(host, lambda made: made.file("/etc/a/b/c.conf", "x\n"))
    foreseen = [(each.record.name, each.outcome) for each in undo.undo(Root(str(host)), check_mode=True)]
    assert foreseen == [("/etc/a/b/c.conf", "restored"), ("/etc/a/b", "restored"), ("/etc/a", "restored")]
    (host / "etc/a/other").write_text("not ours\n")
    foreseen = [(each.record.name, each.outcome) for each in undo.undo(Root(str(host)), check_mode=True)]
    assert foreseen == [("/etc/a/b/c.conf", "restored"), ("/etc/a/b", "restored"), ("/etc/a", "kept")]
    done = [(each.record.name, each.outcome) for each in undo.undo(Root(str(host)))]
    assert done == foreseen


def test_what_is_gone_needs_no_undo_and_is_remembered(host: Path) -> None:
    """A NIC that was taken out is no failure; when it is back with our value, it is restored."""
    (host / "proc").mkdir()
    (host / "proc/arp_ignore").write_text("0\n")
    change(host, lambda made: made.value("/proc/arp_ignore", "1"))
    (host / "proc/arp_ignore").unlink()
    (outcome,) = undo.undo(Root(str(host)))
    assert outcome.outcome == "gone"
    assert "/proc/arp_ignore" in outcome.reason
    (host / "proc/arp_ignore").write_text("1\n")
    assert [each.outcome for each in undo.undo(Root(str(host)))] == ["restored"]
    assert (host / "proc/arp_ignore").read_text().strip() == "0"


def test_the_first_value_before_counts(host: Path) -> None:
    (host / CONF[1:]).write_text("first\n")
    for content in ("second\n", "third\n", "fourth\n"):
        change(host, lambda made, content=content: made.file(CONF, content))
    (record,) = store.records(Root(str(host)))
    assert edits.state_of(record.before).text() == "first\n"
    assert edits.state_of(record.after).text() == "fourth\n"
    undo.undo(Root(str(host)))
    assert (host / CONF[1:]).read_text() == "first\n"


def test_what_somebody_else_changed_is_left_alone(host: Path) -> None:
    change(host, write)
    (host / CONF[1:]).write_text("theirs\n")
    (outcome,) = undo.undo(Root(str(host)))
    assert outcome.outcome == "kept"
    assert CONF in outcome.reason
    assert (host / CONF[1:]).read_text() == "theirs\n"
    assert len(store.records(Root(str(host)))) == 1


def test_our_former_value_is_restored_when_the_next_change_was_interrupted(host: Path) -> None:
    """The record names the third value, the object still holds the second, which is ours as well."""
    (host / CONF[1:]).write_text("first\n")
    change(host, lambda made: made.file(CONF, "second\n"))
    second, third = [
        edits.FileState(text, 0o644, os.geteuid(), os.getegid()) for text in (b"second\n", b"third\n")
    ]
    store.remember(Root(str(host)), "some_module", "file", CONF, second.to_dict(), third.to_dict())
    assert [each.outcome for each in undo.undo(Root(str(host)))] == ["restored"]
    assert (host / CONF[1:]).read_text() == "first\n"


def test_undo_in_check_mode_only_tells(host: Path) -> None:
    change(host, write)
    before = tree(host)
    assert [each.outcome for each in undo.undo(Root(str(host)), check_mode=True)] == ["restored"]
    assert tree(host) == before
    assert len(store.records(Root(str(host)))) == 1


def test_undo_of_one_module_leaves_the_others(host: Path) -> None:
    change(host, write)
    with Changes(Root(str(host)), "other_module") as made:
        made.file("/etc/other", "x\n")
    assert [each.record.name for each in undo.undo(Root(str(host)), ["other_module"])] == ["/etc/other"]
    assert (host / CONF[1:]).exists()


def test_values_are_compared_trimmed_and_written_in_place(host: Path) -> None:
    (host / "proc").mkdir()
    (host / "proc/tcp_ecn").write_text("2\n")
    inode = (host / "proc/tcp_ecn").stat().st_ino
    done = change(host, lambda made: made.value("/proc/tcp_ecn", "1"))
    assert done["actions"] == ["set /proc/tcp_ecn"]
    assert (host / "proc/tcp_ecn").read_text().strip() == "1"
    assert (host / "proc/tcp_ecn").stat().st_ino == inode
    assert change(host, lambda made: made.value("/proc/tcp_ecn", "1"))["changed"] is False
    undo.undo(Root(str(host)))
    assert (host / "proc/tcp_ecn").read_text().strip() == "2"


def test_a_value_that_is_not_there(host: Path) -> None:
    with pytest.raises(RdmaError) as caught:
        change(host, lambda made: made.value("/proc/none", "1"))
    assert caught.value.code == "value_missing"
    assert "There is no /proc/none" in str(caught.value)


def test_a_record_of_another_release_is_not_lost(host: Path) -> None:
    change(host, write)
    (path,) = (host / "var/lib/rdma-k8s/undo").glob("*.json")
    data = json.loads(path.read_text())
    path.write_text(json.dumps({**data, "kind": "unheard"}))
    (outcome,) = undo.undo(Root(str(host)))
    assert outcome.outcome == "failed"
    assert "unheard" in outcome.reason
    path.write_text("{")
    with pytest.raises(RdmaError, match="cannot be used") as caught:
        undo.undo(Root(str(host)))
    assert caught.value.code == "undo_record_wrong"


@pytest.mark.parametrize(
    "before", ["text", {"content": "?"}, {"content": "", "mode": "x", "uid": 0, "gid": 0}, 7]
)
def test_a_damaged_record_stops_no_other(host: Path, before: object) -> None:
    (host / CONF[1:]).write_text("old\n")
    change(host, write)
    (path,) = (host / "var/lib/rdma-k8s/undo").glob("*.json")
    path.write_text(json.dumps({**json.loads(path.read_text()), "before": before}))
    with Changes(Root(str(host)), "other_module") as made:
        made.file("/etc/other", "x\n")
    outcomes = {each.record.name: each.outcome for each in undo.undo(Root(str(host)))}
    assert outcomes == {CONF: "failed", "/etc/other": "restored"}


def test_what_somebody_wrote_between_two_of_our_runs_is_not_thrown_away(host: Path) -> None:
    (host / CONF[1:]).write_text("first\n")
    change(host, lambda made: made.file(CONF, "ours\n"))
    (host / CONF[1:]).write_text("ours, and theirs\n")
    change(host, lambda made: made.file(CONF, "ours again, and theirs\n"))
    change(host, lambda made: made.file(CONF, "ours once more, and theirs\n"))
    (outcome,) = undo.undo(Root(str(host)))
    assert outcome.outcome == "kept"
    assert (host / CONF[1:]).read_text() == "ours once more, and theirs\n"
    (host / CONF[1:]).write_text("first\n")
    assert undo.undo(Root(str(host))) == []
    assert store.records(Root(str(host))) == []


def test_a_value_that_was_repaired_goes_back_to_what_it_was_at_first(host: Path) -> None:
    """A value is ours or theirs as a whole: what somebody set in between was replaced, and is nobody's wish now."""
    (host / "proc").mkdir()
    for value in ("2\n", "0\n"):
        (host / "proc/tcp_ecn").write_text(value)
        change(host, lambda made: made.value("/proc/tcp_ecn", "1"))
    assert [each.outcome for each in undo.undo(Root(str(host)))] == ["restored"]
    assert (host / "proc/tcp_ecn").read_text().strip() == "2"


def test_a_merged_file_loses_no_line_of_another_run(host: Path) -> None:
    """Two runs that both add a line: the second one reads when the first one has written."""
    (host / CONF[1:]).write_text("")
    children = []
    for line in ("one\n", "two\n"):
        child = os.fork()
        if child == 0:
            with Changes(Root(str(host)), "some_module") as made:
                text = (host / CONF[1:]).read_text()
                time.sleep(0.3)
                made.file(CONF, text + line)
            os._exit(0)
        children.append(child)
    for child in children:
        assert os.waitpid(child, 0)[1] == 0
    assert sorted((host / CONF[1:]).read_text().splitlines()) == ["one", "two"]


def test_a_run_that_changes_nothing_writes_nothing(host: Path) -> None:
    (host / CONF[1:]).write_text(TEXT)
    (host / CONF[1:]).chmod(0o644)
    change(host, write)
    assert not (host / "var").exists()


def test_runs_with_different_wishes_that_are_all_interrupted(host: Path) -> None:
    """What the object holds is ours, though it is not what the last run was about to write."""
    change(host, lambda made: made.file(CONF, "one\n"))
    root = Root(str(host))
    held = edits.read(root, CONF)
    assert held is not None
    for content in (b"two\n", b"three\n", b"four\n"):  # recorded, then killed before the change
        wanted = edits.FileState(content, held.mode, held.uid, held.gid)
        store.remember(root, "some_module", "file", CONF, held.to_dict(), wanted.to_dict())
    assert [each.outcome for each in undo.undo(root)] == ["restored"]
    assert not (host / CONF[1:]).exists()


def test_records_go_below_a_root_with_an_absolute_link(host: Path) -> None:
    (host / "data").mkdir()
    (host / "var").symlink_to("/data")
    change(host, write)
    assert (host / "data/lib/rdma-k8s/undo").is_dir()
    assert [each.outcome for each in undo.undo(Root(str(host)))] == ["restored"]
    assert store.records(Root(str(host))) == []


def test_two_runs_at_once_are_one_after_the_other(host: Path) -> None:
    root = Root(str(host))
    with store.lock(root), pytest.raises(RdmaError) as caught, store.lock(root, wait=0.2):
        pass
    assert caught.value.code == "node_busy"
    assert caught.value.retryable
    with store.lock(root):
        pass


@pytest.mark.parametrize("kind", ["directory", "device", "large"])
def test_what_is_no_setting_is_refused(host: Path, kind: str) -> None:
    place = host / CONF[1:]
    if kind == "directory":
        place.mkdir()
    elif kind == "device":
        os.mkfifo(place)
    else:
        with place.open("wb") as file:
            file.truncate(edits.LARGEST + 1)
    with pytest.raises(RdmaError) as caught:
        change(host, write)
    assert caught.value.code == "file_unreadable"
    assert CONF in str(caught.value)


# --- faults -----------------------------------------------------------------------------------------------------------


def killed_at(host: Path, act: Callable[[], object], number: int) -> bool:
    """Run ``act`` in a child that is killed before its act number ``number``; false when it ended before that."""
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        seen = 0

        def hook(event: str, values: tuple[Any, ...]) -> None:
            nonlocal seen
            writing = event == "open" and isinstance(values[2], int) and values[2] & (os.O_WRONLY | os.O_RDWR)
            if writing or event in ("os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.chmod", "os.chown"):
                seen += 1
                if seen == number:
                    os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(hook)
        try:
            act()
        finally:
            os._exit(0)
    status = os.waitpid(child, 0)[1]
    return os.WIFSIGNALED(status)


def two_files(made: Changes) -> None:
    made.file(CONF, TEXT)
    made.file("/etc/new/other.conf", "x\n")
    made.value("/etc/value", "1")


def starting(host: Path) -> None:
    (host / CONF[1:]).write_text("old\n")
    (host / "etc/value").write_text("0\n")


@pytest.mark.parametrize("number", range(1, 60))
def test_killed_anywhere_the_next_run_repairs_and_undo_restores(
    host: Path, tmp_path: Path, number: int
) -> None:
    starting(host)
    before = tree(host)
    killed = killed_at(host, lambda: change(host, two_files), number)
    contents = {name: value for name, value in tree(host).items() if name in before}
    assert contents[CONF][1] in (b"old\n", TEXT.encode())
    if number % 2:
        undo.undo(Root(str(host)))
        assert tree(host) == before
        assert store.records(Root(str(host))) == []
        return
    change(host, two_files)
    assert (host / CONF[1:]).read_text() == TEXT
    assert (host / "etc/new/other.conf").read_text() == "x\n"
    assert sorted(path.name for path in (host / "etc/new").iterdir()) == ["other.conf"]
    assert sorted(path.name for path in (host / "etc/modprobe.d").iterdir()) == ["ib_core.conf"]
    assert change(host, two_files)["changed"] is False
    undo.undo(Root(str(host)))
    assert tree(host) == before
    if not killed:
        assert number > 20, "a whole run has more acts than that"


@pytest.mark.parametrize("number", range(1, 30))
def test_undo_that_is_killed_is_finished_by_the_next(host: Path, number: int) -> None:
    starting(host)
    before = tree(host)
    change(host, two_files)
    killed_at(host, lambda: undo.undo(Root(str(host))), number)
    undo.undo(Root(str(host)))
    assert tree(host) == before
    assert store.records(Root(str(host))) == []


MS_RDONLY, MS_REMOUNT = 1, 32


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """A file system of 64 kB in a directory of its own."""
    if os.geteuid() != 0:
        pytest.skip("mounts need root")
    place = tmp_path / "small"
    place.mkdir()
    mount(place, 0)
    try:
        (place / "etc/modprobe.d").mkdir(parents=True)
        (place / CONF[1:]).write_text("old\n")
        yield place
    finally:
        assert ctypes.CDLL(None, use_errno=True).umount2(str(place).encode(), 2) == 0


def mount(place: Path, flags: int) -> None:
    library = ctypes.CDLL(None, use_errno=True)
    done = library.mount(b"small", str(place).encode(), b"tmpfs", flags, b"size=64k")
    assert done == 0, os.strerror(ctypes.get_errno())


def fill(path: Path) -> None:
    """Write a file until there is no space left."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT)
    try:
        with contextlib.suppress(OSError):
            while os.write(handle, b"x" * 4096):
                pass
    finally:
        os.close(handle)


def test_a_full_disk_changes_nothing(small: Path) -> None:
    change(small, lambda made: made.directory("/etc/first"))
    fill(small / "filler")
    before = tree(small)
    with pytest.raises(RdmaError) as caught:
        change(small, write)
    assert caught.value.code == "file_not_written"
    assert "no space left on device" in str(caught.value)
    assert tree(small) == before
    (small / "filler").unlink()
    change(small, write)
    assert (small / CONF[1:]).read_text() == TEXT


def test_a_read_only_file_system_changes_nothing(small: Path) -> None:
    mount(small, MS_RDONLY | MS_REMOUNT)
    before = tree(small)
    with pytest.raises(RdmaError) as caught:
        change(small, write)
    assert caught.value.code == "file_not_written"
    assert "read-only file system" in str(caught.value)
    assert tree(small) == before


def test_a_value_that_the_kernel_does_not_take(host: Path) -> None:
    (host / "etc/value").mkdir()
    with pytest.raises(RdmaError) as caught:
        changes.write_value(Root(str(host)), "/etc/value", "1")
    assert caught.value.code == "value_not_written"
    assert "'1'" in str(caught.value)


def test_bytes_that_are_no_text_are_written_as_they_were_read(host: Path) -> None:
    (host / CONF[1:]).write_bytes(b"# \xfc\xff\n")

    def act(made: Changes) -> None:
        state = edits.read(made.root, CONF)
        assert state is not None
        made.file(CONF, state.exact() + TEXT)

    result = change(host, act)
    assert (host / CONF[1:]).read_bytes() == b"# \xfc\xff\n" + TEXT.encode()
    json.dumps(result).encode("utf-8")
    assert result["diff"][0]["before"] == "# \ufffd\ufffd\n"
