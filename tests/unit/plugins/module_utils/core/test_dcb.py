# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The bytes of DCB netlink against the kernel's own headers, and against bytes that were written down."""

from __future__ import annotations

import shutil
import struct
import subprocess
from pathlib import Path

import pytest

from ansible_collections.rdma.k8s.plugins.module_utils.core import dcb

PROGRAM = r"""
#include <stdio.h>
#include <string.h>
#include <linux/dcbnl.h>
#include <linux/rtnetlink.h>

static void show(const void *data, unsigned long size)
{
    const unsigned char *bytes = data;
    while (size--)
        printf("%02x", *bytes++);
    printf("\n");
}

int main(void)
{
    struct { struct nlattr head; struct ieee_pfc pfc; } __attribute__((packed)) pfc;
    struct { struct nlattr table; struct { struct nlattr head; struct dcb_app app; } entry[2]; } apps;

    printf("%d %d %zu\n", RTM_GETDCB, RTM_SETDCB, sizeof(struct dcbmsg));
    printf("%d %d %d %d %d\n", DCB_CMD_IEEE_SET, DCB_CMD_IEEE_GET, DCB_CMD_GDCBX, DCB_CMD_SDCBX, DCB_CMD_IEEE_DEL);
    printf("%d %d %d\n", DCB_ATTR_IFNAME, DCB_ATTR_IEEE, DCB_ATTR_DCBX);
    printf("%d %d %d %d %d\n", DCB_CAP_DCBX_HOST, DCB_CAP_DCBX_LLD_MANAGED, DCB_CAP_DCBX_VER_CEE,
        DCB_CAP_DCBX_VER_IEEE, DCB_CAP_DCBX_STATIC);
    memset(&pfc, 0, sizeof(pfc));
    pfc.head.nla_len = sizeof(pfc);
    pfc.head.nla_type = DCB_ATTR_IEEE_PFC;
    pfc.pfc.pfc_cap = 8;
    pfc.pfc.pfc_en = 1 << 5;
    pfc.pfc.mbc = 1;
    pfc.pfc.delay = 0x1234;
    show(&pfc, sizeof(pfc));
    pfc.pfc.requests[5] = 77;
    pfc.pfc.indications[0] = 5;
    show(&pfc, sizeof(pfc));
    memset(&apps, 0, sizeof(apps));
    apps.table.nla_len = sizeof(apps);
    apps.table.nla_type = DCB_ATTR_IEEE_APP_TABLE;
    for (int i = 0; i < 2; i++) {
        apps.entry[i].head.nla_len = sizeof(apps.entry[i]);
        apps.entry[i].head.nla_type = DCB_ATTR_IEEE_APP;
        apps.entry[i].app.selector = IEEE_8021QAZ_APP_SEL_DSCP;
        apps.entry[i].app.priority = i ? 6 : 5;
        apps.entry[i].app.protocol = i ? 48 : 40;
    }
    show(&apps, sizeof(apps));
    return 0;
}
"""


def test_the_bytes_are_those_of_the_kernels_headers(tmp_path: Path) -> None:
    """S60-S62: a C program with the kernel's structures prints what the code makes."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None or not Path("/usr/include/linux/dcbnl.h").exists():
        pytest.skip("needs a C compiler and the kernel's headers")
    (tmp_path / "show.c").write_text(PROGRAM)
    subprocess.run([compiler, "-o", str(tmp_path / "show"), str(tmp_path / "show.c")], check=True)
    lines = subprocess.run(
        [str(tmp_path / "show")], check=True, capture_output=True, text=True
    ).stdout.splitlines()
    assert lines[0] == "%d %d 4" % (dcb.RTM_GETDCB, dcb.RTM_SETDCB)
    assert lines[1] == "%d %d %d %d %d" % (
        dcb.IEEE_SET,
        dcb.IEEE_GET,
        dcb.GET_DCBX,
        dcb.SET_DCBX,
        dcb.IEEE_DEL,
    )
    assert lines[2] == "%d %d %d" % (dcb.ATTR_IFNAME, dcb.ATTR_IEEE, dcb.ATTR_DCBX)
    assert lines[3] == "1 2 4 8 16"
    told = bytes.fromhex(lines[4])
    assert dcb.write_pfc(0x20, told[4:]) == told
    assert dcb.read_ieee(bytes.fromhex(lines[5])).pauses == (
        (0, 0, 0, 0, 0, 77, 0, 0),
        (5, 0, 0, 0, 0, 0, 0, 0),
    )
    assert dcb.write_apps([(40, 5), (48, 6)]) == bytes.fromhex(lines[6])


def test_bytes_that_were_written_down() -> None:
    """S61, for a machine without a compiler; little-endian, as x86_64 and arm64 are."""
    assert dcb.write_apps([(40, 5)]).hex() == "0c000300" + "08000100" + "05052800"
    assert dcb.write_pfc(0x20).hex() == "8c000200" + "0020" + "00" * 134
    assert dcb.attribute(1, b"rdma0\0").hex() == "0a000100" + "72646d613000" + "0000"


def test_what_is_read_back() -> None:
    """S61: PFC and the entries for DSCP; other selectors and attributes are left out."""
    pfc = struct.pack("=BBBxHxx16Q", 8, 0x28, 0, 7, *range(16))
    entries = [(5, 5, 40), (5, 6, 48), (1, 3, 0x8915), (3, 4, 4791)]
    table = b"".join([dcb.attribute(1, struct.pack("=BBH", *entry)) for entry in entries])
    data = dcb.attribute(1, bytes(55)) + dcb.attribute(2, pfc) + dcb.attribute(3 | 0x8000, table)
    found = dcb.read_ieee(data)
    assert (found.pfc, found.apps) == (0x28, ((40, 5), (48, 6)))
    assert found.pauses == (tuple(range(8)), tuple(range(8, 16)))
    assert dcb.write_pfc(1, found.pfc_bytes)[4:12].hex() == "0801000007000000"
    assert dcb.read_ieee(b"") == dcb.Ieee()


@pytest.mark.parametrize("data", ["08000200", "03000200", "0c00020001020304ffffffff", "ffff0300"])
def test_bytes_that_are_no_attributes(data: str) -> None:
    with pytest.raises(ValueError, match="bytes"):
        dcb.read_ieee(bytes.fromhex(data))
