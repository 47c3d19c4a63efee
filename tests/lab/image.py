# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The node image: kernel, initrd and root file system, built once and kept by a hash of what went in."""

from __future__ import annotations

import collections.abc
import concurrent.futures
import contextlib
import dataclasses
import fcntl
import json
import os
import pathlib
import shutil
import subprocess

from . import kernel, packages, plan, rxe
from .errors import LabError
from .progress import Progress, run_logged

HERE = pathlib.Path(__file__).resolve().parent
GUEST = HERE / "guest"
RECIPE = 1
"""Raise when an image of this code differs from one of the code before although the files below are equal."""
GUEST_PACKAGES = (
    "ethtool",
    "ibverbs-providers",
    "ibverbs-utils",
    "iproute2",
    "iputils-ping",
    "kmod",
    "nftables",
    "openssh-server",
    "perftest",
    "procps",
    "python3",
    "rdma-core",
    "rdmacm-utils",
    "systemd-sysv",
    "tcpdump",
    "udev",
)
EXCLUDED_PATHS = ("/usr/share/man/*", "/usr/share/doc/*", "/usr/share/locale/*", "/usr/share/info/*")
MASKED_UNITS = (
    "apt-daily-upgrade.timer",
    "apt-daily.timer",
    "dev-hugepages.mount",
    "dev-mqueue.mount",
    "dpkg-db-backup.timer",
    "e2scrub_all.timer",
    "e2scrub_reap.service",
    "fstrim.timer",
    "getty.target",
    "iwpmd.service",
    "kmod-static-nodes.service",
    "ldconfig.service",
    "modprobe@configfs.service",
    "modprobe@dm_mod.service",
    "modprobe@drm.service",
    "modprobe@efi_pstore.service",
    "modprobe@fuse.service",
    "modprobe@loop.service",
    "networking.service",
    "nftables.service",
    "proc-sys-fs-binfmt_misc.automount",
    "rdma-load-modules@infiniband.service",
    "rdma-load-modules@rdma.service",
    "rdma-load-modules@roce.service",
    "rdma-ndd.service",
    "remote-fs.target",
    "sys-fs-fuse-connections.mount",
    "sys-kernel-config.mount",
    "sys-kernel-debug.mount",
    "sys-kernel-tracing.mount",
    "systemd-ask-password-console.path",
    "systemd-ask-password-wall.path",
    "systemd-binfmt.service",
    "systemd-boot-system-token.service",
    "systemd-firstboot.service",
    "systemd-fsck-root.service",
    "systemd-hwdb-update.service",
    "systemd-initctl.socket",
    "systemd-journal-flush.service",
    "systemd-logind.service",
    "systemd-machine-id-commit.service",
    "systemd-modules-load.service",
    "systemd-networkd.service",
    "systemd-pcrmachine.service",
    "systemd-pcrphase-sysinit.service",
    "systemd-pcrphase.service",
    "systemd-pstore.service",
    "systemd-random-seed.service",
    "systemd-remount-fs.service",
    "systemd-sysusers.service",
    "systemd-timesyncd.service",
    "systemd-tmpfiles-clean.timer",
    "systemd-update-done.service",
    "systemd-update-utmp-runlevel.service",
    "systemd-update-utmp.service",
    "systemd-user-sessions.service",
)
"""Units that a lab node does without; each costs boot time in an emulated machine."""
WANTED_UNITS = {"sysinit.target": ("lab-node.service",)}
DISK_SIZE = 1500 << 20
FREE_SPACE = 3 << 30
"""Bytes that must be free before a build begins."""
KEEP_IMAGES = 2
SHORTEST_BASE = 3
"""Parts that the path of a cache has at least, the root directory included."""
MOUNTS = pathlib.Path("/proc/self/mountinfo")
MARK = "rdma-k8s-lab.cache"
"""A file that says that a directory is a cache of this program, so that no other directory is taken for one."""


@dataclasses.dataclass(frozen=True)
class Image:
    """A finished image: a directory with ``vmlinux``, ``initrd`` and ``root.raw``."""

    path: pathlib.Path
    key: str
    abi: str
    driver: str

    @property
    def kernel(self) -> pathlib.Path:
        """The ELF kernel."""
        return self.path / "vmlinux"

    @property
    def initrd(self) -> pathlib.Path:
        """The first file system."""
        return self.path / "initrd"

    @property
    def root(self) -> pathlib.Path:
        """The raw ext4 image, never written to."""
        return self.path / "root.raw"


def guest_files() -> dict[str, bytes]:
    """The files that the lab adds to the root file system, by path."""
    root = GUEST / "rootfs"
    files = {
        f"/{path.relative_to(root)}": path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()
    }
    files["/usr/local/lib/rdma-lab/node.py"] = (GUEST / "node.py").read_bytes()
    files["/etc/udev/rules.d/70-rdma-lab.rules"] = plan.udev_rules().encode()
    # Without it mlx5_0 is renamed after its PCI place as soon as it has one.
    files["/etc/udev/rules.d/60-rdma-persistent-naming.rules"] = b""
    files["/etc/machine-id"] = b""
    files["/etc/resolv.conf"] = b""
    files["/etc/fstab"] = b""
    return files


def remove_tree(path: pathlib.Path, below: pathlib.Path) -> None:
    """Delete a directory that lies inside the directory ``below``; refuse everything that could reach further.

    Deleting as root forgives nothing, so the path must be strictly inside ``below`` after all links are followed, must
    not go through ``..``, must not be a link itself, and nothing may be mounted in it.
    """
    base = below.resolve()
    real = path.parent.resolve() / path.name
    if len(base.parts) < SHORTEST_BASE or ".." in path.parts or base not in real.parents or path.is_symlink():
        raise LabError("outside", f"{path} is not a directory inside {base}, so it is not removed.")
    if not real.exists():
        return
    mounts = [line.split()[4] for line in MOUNTS.read_text(encoding="utf-8").splitlines()]
    inside = [mount for mount in mounts if mount == str(real) or mount.startswith(f"{real}/")]
    if inside:
        raise LabError(
            "mounted", f"{path} cannot be removed: {inside[0]} is mounted there; unmount it first."
        )
    shutil.rmtree(real)


class Cache:
    """The cache directory. Everything in it can be built again; nothing else knows its layout."""

    def __init__(self, path: pathlib.Path, progress: Progress):
        self.path = path
        self.progress = progress
        self.log = path / "log" / "build.log"

    def claim(self) -> None:
        """Make the cache directory; refuse one with other things in it, because a cache is cleaned."""
        if len(self.path.resolve().parts) < SHORTEST_BASE:
            raise LabError(
                "cache_foreign",
                f"{self.path} cannot be the lab's cache; set RDMA_LAB_CACHE to one of its own.",
            )
        if self.path.exists() and not (self.path / MARK).exists() and any(self.path.iterdir()):
            reason = f"{self.path} has other things in it; set RDMA_LAB_CACHE to a directory of its own."
            raise LabError("cache_foreign", reason)
        self.path.mkdir(parents=True, exist_ok=True)
        (self.path / MARK).touch()

    # --- small things -------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def locked(self) -> collections.abc.Iterator[None]:
        """Hold the lock of the cache, so that two builds never meet."""
        self.claim()
        with (self.path / "lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                self.progress.say("another lab builds in this cache; waiting for it")
                fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    @contextlib.contextmanager
    def building(self, name: str) -> collections.abc.Iterator[pathlib.Path]:
        """A directory to fill; it gets its final ``name`` only when everything went well."""
        unfinished = self.path / f"{name}.unfinished"
        remove_tree(unfinished, self.path)
        unfinished.mkdir(parents=True)
        yield unfinished
        final = self.path / name
        remove_tree(final, self.path)
        unfinished.rename(final)

    def read_json(self, name: str) -> dict:
        """A small JSON file of the cache, or an empty dictionary."""
        try:
            return json.loads((self.path / name).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}

    def write_json(self, name: str, value: dict) -> None:
        """Write a small JSON file of the cache at once or not at all."""
        unfinished = self.path / f"{name}.unfinished"
        unfinished.write_text(json.dumps(value, indent=2) + "\n", encoding="utf-8")
        unfinished.rename(self.path / name)

    @property
    def key_file(self) -> pathlib.Path:
        """The private ssh key that opens every node."""
        return self.path / "id_ed25519"

    def ensure_key(self) -> str:
        """Make the ssh key if there is none; the public part."""
        if not self.key_file.exists():
            run_logged(
                ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "rdma-lab", "-f", str(self.key_file)],
                self.log,
            )
        return self.key_file.with_suffix(".pub").read_text(encoding="utf-8")

    # --- the image ----------------------------------------------------------------------------------------------

    def root_key(self, suite: str) -> str:
        """Hash of what the plain root file system is made from."""
        return plan.digest(RECIPE, suite, GUEST_PACKAGES, EXCLUDED_PATHS)

    def image_key(self, known: dict, module: bytes | None, public_key: str) -> str:
        """Hash of what goes into an image; ``known`` holds the suite, the kernel ABI and the hash of the packages."""
        sources = (guest_files(), (GUEST / "init.sh").read_bytes(), MASKED_UNITS, WANTED_UNITS, DISK_SIZE)
        modules = (kernel.MODULE_PREFIXES, kernel.INITRD_MODULES)
        return plan.digest(
            self.root_key(known["suite"]),
            known["packages"],
            known["abi"],
            module,
            public_key,
            sources,
            modules,
        )

    def check(self) -> None:
        """Raise the reason why no lab can run on this machine; what is only missing is installed.

        That is: no QEMU and no way to get it, or no image and no way to build one.
        """
        self.claim()
        packages.ensure_tools(packages.RUN_TOOLS, self.log, self.progress)
        if self._cached("lab", self.read_json("sources.json")) is None:
            packages.require_debian("Building the node image")
            packages.require_root("Building the node image")

    def ensure_image(self, driver: str, fresh: bool = False) -> Image:
        """The image for ``driver``, built if need be. ``lab`` falls back to ``stock`` when it cannot be built.

        ``fresh`` looks for a newer kernel and newer packages instead of using what is in the cache.
        """
        with self.locked():
            packages.ensure_tools(packages.RUN_TOOLS, self.log, self.progress)
            known = {} if fresh else self.read_json("sources.json")
            return self._cached(driver, known) or self._build(driver, known, fresh)

    def _cached(self, driver: str, known: dict) -> Image | None:
        """The image that the present sources would give, if it is there already."""
        if not known or not self.key_file.exists():
            return None
        module = None
        if driver == "lab":
            name = rxe.directory_name(known["abi"])
            if known.get("no_driver", {}).get("name") == name:
                self._say_fallback(known["no_driver"]["reason"])
                driver = "stock"
            elif (self.path / name / rxe.MODULE).exists():
                module = (self.path / name / rxe.MODULE).read_bytes()
            else:
                return None
        key = self.image_key(known, module, self.ensure_key())
        image = Image(self.path / f"image-{key}", key, known["abi"], driver)
        if not (image.path / "image.json").exists():
            return None
        os.utime(image.path)
        return image

    def _say_fallback(self, reason: str) -> None:
        self.progress.say(f"no edited rxe: {reason}")
        self.progress.say(
            "going on with the stock driver: RDMA between IPvlan children will not work (build --fresh tries again)"
        )

    def _build(self, driver: str, known: dict, fresh: bool) -> Image:
        progress = self.progress
        suite = packages.require_debian("Building the node image")
        packages.require_root("Building the node image")
        free = shutil.disk_usage(self.path).free
        if free < FREE_SPACE:
            raise LabError(
                "disk_full", f"{self.path} has {free >> 20} MB free; a build needs {FREE_SPACE >> 20} MB."
            )
        for old in self.path.glob("*.unfinished"):
            remove_tree(old, self.path) if old.is_dir() else old.unlink()
        packages.ensure_tools(packages.BUILD_TOOLS, self.log, progress)
        public_key = self.ensure_key()
        abi = known.get("abi") or packages.detect_kernel(self.log, progress, fresh)
        progress.say(f"kernel {abi} for Debian {suite}; everything goes to {self.path}")

        # The root file system and the kernel with its driver come in parallel; they wait for different things.
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            root_job = pool.submit(self._ensure_root, suite, fresh)
            abi = self._ensure_kernel(abi)
            module = None
            if driver == "lab":
                try:
                    module = self._ensure_driver(abi)
                except LabError as error:
                    self._say_fallback(str(error))
                    known = dict(known, no_driver={"name": rxe.directory_name(abi), "reason": str(error)})
                    driver = "stock"
            root = root_job.result()

        status = (root / "var" / "lib" / "dpkg" / "status").read_bytes()
        known = dict(known, suite=suite, abi=abi, packages=plan.digest(status))
        self.write_json("sources.json", known)
        key = self.image_key(known, module.read_bytes() if module else None, public_key)
        name = f"image-{key}"
        if not (self.path / name / "image.json").exists():
            with progress.step("putting the image together"), self.building(name) as directory:
                self._assemble(directory, root, abi, module, public_key)
                (directory / "image.json").write_text(
                    json.dumps({"abi": abi, "driver": driver}), encoding="utf-8"
                )
        self._prune(known)
        return Image(self.path / name, key, abi, driver)

    def _ensure_root(self, suite: str, fresh: bool) -> pathlib.Path:
        """The plain root file system of the distribution, by mmdebstrap from this machine's own sources."""
        name = f"root-{self.root_key(suite)}"
        if fresh or not (self.path / name).exists():
            with self.progress.step(f"root file system of Debian {suite}"), self.building(name) as directory:
                sources = [str(path) for path in apt_sources()]
                options = [f"--dpkgopt=path-exclude={path}" for path in EXCLUDED_PATHS]
                command = ["mmdebstrap", "--quiet", "--mode=root", "--variant=minbase", *options]
                command += [f"--include={','.join(GUEST_PACKAGES)}", suite, str(directory / "tree"), *sources]
                run_logged(command, self.log, env=packages.environment())
        return self.path / name / "tree"

    def _ensure_kernel(self, abi: str) -> str:
        """The kernel's files, unpacked; the ABI that was really had (package lists may name one that is gone)."""
        for attempt in range(2):
            name = f"kernel-{abi}"
            if (self.path / name).exists():
                return abi
            try:
                with self.progress.step(f"kernel {abi}"), self.building(name) as directory:
                    (package,) = packages.download([f"linux-image-{abi}"], directory / "deb", self.log)
                    run_logged(["dpkg-deb", "--extract", str(package), str(directory)], self.log)
                    shutil.rmtree(directory / "deb")
                    image = (directory / "boot" / f"vmlinuz-{abi}").read_bytes()
                    (directory / "vmlinux").write_bytes(kernel.extract_vmlinux(image))
                    # The package carries no list of dependencies; this writes it.
                    run_logged(["depmod", "-b", str(directory), abi], self.log, env=packages.environment())
            except LabError as error:
                if attempt or error.code != "command_failed":
                    raise
                abi = packages.detect_kernel(self.log, self.progress, fresh=True)
        return abi

    def _ensure_driver(self, abi: str) -> pathlib.Path:
        """The edited rxe for this kernel, built if need be."""
        name = rxe.directory_name(abi)
        module = self.path / name / rxe.MODULE
        if not module.exists():
            packages.ensure_tools(packages.DRIVER_TOOLS, self.log, self.progress)
            with self.progress.step("edited rxe driver (lab rxe)"), self.building(name) as directory:
                rxe.build(abi, directory, self.log, self.progress)
        return module

    def _assemble(
        self,
        directory: pathlib.Path,
        root: pathlib.Path,
        abi: str,
        module: pathlib.Path | None,
        public_key: str,
    ) -> None:
        """Fill ``directory`` with vmlinux, initrd and root.raw."""
        tree = directory / "tree"
        run_logged(["cp", "--archive", "--reflink=auto", str(root), str(tree)], self.log)
        kernel_tree = self.path / f"kernel-{abi}"
        modules = self._copy_modules(kernel_tree, tree, abi)
        for name, content in guest_files().items():
            put_file(tree, name, content, 0o644)
        put_file(tree, "/root/.ssh/authorized_keys", public_key.encode(), 0o600)
        (tree / "root" / ".ssh").chmod(0o700)
        if module is not None:
            put_file(tree, "/usr/local/lib/rdma-lab/rdma_rxe.ko", module.read_bytes(), 0o644)
        for unit in MASKED_UNITS:
            put_link(tree, f"/etc/systemd/system/{unit}", "/dev/null")
        for generator in (tree / "usr/lib/systemd/system-generators").iterdir():
            # Nothing of this image needs generated units, and each generator is a process at every boot.
            put_link(tree, f"/etc/systemd/system-generators/{generator.name}", "/dev/null")
        put_link(tree, "/etc/systemd/system/default.target", "/lib/systemd/system/multi-user.target")
        for target, units in WANTED_UNITS.items():
            for unit in units:
                put_link(tree, f"/etc/systemd/system/{target}.wants/{unit}", f"/etc/systemd/system/{unit}")

        shutil.copyfile(kernel_tree / "vmlinux", directory / "vmlinux")
        self._make_initrd(directory, tree, abi, modules)
        raw = directory / "root.raw"
        with raw.open("wb") as file:
            file.truncate(DISK_SIZE)
        options = ["-q", "-F", "-t", "ext4", "-O", "^has_journal,^metadata_csum", "-m", "0", "-d", str(tree)]
        run_logged(["mke2fs", *options, str(raw)], self.log, env=packages.environment())
        raw.chmod(0o444)
        remove_tree(tree, self.path)

    def _copy_modules(self, kernel_tree: pathlib.Path, tree: pathlib.Path, abi: str) -> dict[str, list[str]]:
        """Copy the wanted modules into the root file system, decompressed (that costs time in the guest)."""
        source, target = (base / "lib" / "modules" / abi for base in (kernel_tree, tree / "usr"))
        dependencies = kernel.parse_dependencies((source / "modules.dep").read_text(encoding="utf-8"))
        chosen = kernel.closure(dependencies, kernel.MODULE_PREFIXES)
        for path in chosen:
            (target / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source / path, target / path)
        for listing in [*sorted(source.glob("modules.builtin*")), source / "modules.order"]:
            shutil.copyfile(listing, target / listing.name)
        packed = [str(target / path) for path in chosen if path.endswith(".xz")]
        if packed:
            run_logged(["xz", "--decompress", "--threads=0", *packed], self.log)
        run_logged(["depmod", "-b", str(tree), abi], self.log, env=packages.environment())
        return kernel.parse_dependencies((target / "modules.dep").read_text(encoding="utf-8"))

    def _make_initrd(
        self, directory: pathlib.Path, tree: pathlib.Path, abi: str, modules: dict[str, list[str]]
    ) -> None:
        """A first file system of a static busybox, a few drivers and the script ``guest/init.sh``."""
        first = directory / "first"
        for name in ("bin", "dev", "modules", "proc", "root"):
            (first / name).mkdir(parents=True)
        shutil.copy2(self._busybox(), first / "bin" / "busybox")
        for number, path in enumerate(kernel.load_order(modules, kernel.INITRD_MODULES)):
            source = tree / "usr" / "lib" / "modules" / abi / path
            shutil.copyfile(source, first / "modules" / f"{number:02}-{source.name}")
        put_file(first, "/init", b"#!/bin/busybox sh\n" + (GUEST / "init.sh").read_bytes(), 0o755)
        names = "".join(f"{path.relative_to(first)}\n" for path in sorted(first.rglob("*")))
        with (directory / "initrd").open("wb") as out:
            command = ["cpio", "--create", "--format=newc", "--quiet"]
            subprocess.run(command, input=names.encode(), stdout=out, cwd=first, check=True)
        shutil.rmtree(first)

    def _busybox(self) -> pathlib.Path:
        """A static busybox, out of its package (installing it would push an ordinary busybox off the machine)."""
        if not (self.path / "busybox").exists():
            with self.building("busybox") as directory:
                (package,) = packages.download(["busybox-static"], directory / "deb", self.log)
                run_logged(["dpkg-deb", "--extract", str(package), str(directory)], self.log)
        (binary,) = (self.path / "busybox").rglob("bin/busybox")
        return binary

    def _prune(self, known: dict) -> None:
        """Drop the images that were not used for longest, saved states of images that are gone, and old parts."""
        in_use = {image_in_use(path) for path in self.path.glob("run/*/lab.json")}
        images = sorted(self.path.glob("image-*"), key=lambda path: path.stat().st_mtime, reverse=True)
        for path in images[KEEP_IMAGES:]:
            if path.name not in in_use:
                remove_tree(path, self.path)
        left = {path.name.removeprefix("image-") for path in self.path.glob("image-*")}
        for path in self.path.glob("warm-*"):
            if path.name.split("-")[1] not in left:
                remove_tree(path, self.path)
        current = {
            f"root-{self.root_key(known['suite'])}",
            f"kernel-{known['abi']}",
            rxe.directory_name(known["abi"]),
        }
        for pattern in ("root-*", "kernel-*", "driver-*"):
            for path in self.path.glob(pattern):
                if path.name not in current:
                    remove_tree(path, self.path)


def image_in_use(state: pathlib.Path) -> str:
    """Directory name of the image that a running lab uses."""
    try:
        return pathlib.PurePath(json.loads(state.read_text(encoding="utf-8"))["image"]).name
    except (OSError, ValueError, KeyError):
        return ""


def apt_sources(base: pathlib.Path = pathlib.Path("/etc/apt")) -> list[pathlib.Path]:
    """The files with this machine's Debian package sources; the nodes are installed from the same ones."""
    files = [base / "sources.list", *sorted((base / "sources.list.d").glob("*"))]
    own = ("sources.list", "debian.sources")
    files = [
        path
        for path in files
        if path.is_file() and path.suffix in (".list", ".sources") and path.stat().st_size
    ]
    found = [path for path in files if path.name in own or names_debian(path)]
    if not found:
        raise LabError(
            "no_sources", f"{base} names no Debian package source, so the nodes cannot be installed."
        )
    return found


def names_debian(path: pathlib.Path) -> bool:
    """True when a sources file has an entry whose address ends in a Debian archive's directory."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError:
        return False
    words = (
        word.rstrip("/")
        for line in text.splitlines()
        if not line.lstrip().startswith("#")
        for word in line.split()
    )
    return any(word.endswith(("/debian", "/debian-security")) for word in words)


def put_file(tree: pathlib.Path, name: str, content: bytes, mode: int) -> None:
    """Write a file of a root file system that is being made, in place of whatever is there."""
    path = tree / name.lstrip("/")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    path.write_bytes(content)
    path.chmod(mode)


def put_link(tree: pathlib.Path, name: str, target: str) -> None:
    """Make a symbolic link in a root file system that is being made, in place of whatever is there."""
    path = tree / name.lstrip("/")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    path.symlink_to(target)
