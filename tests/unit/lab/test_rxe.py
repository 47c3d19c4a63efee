# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The edits that make the lab's rxe out of the distribution's."""

from __future__ import annotations

import pytest

from ansible_collections.rdma.k8s.tests.lab import rxe
from ansible_collections.rdma.k8s.tests.lab.errors import LabError

NET = """\
#include <net/udp_tunnel.h>
\trt = ip_route_output_key(&init_net, &fl);
\tndst = stub->ipv6_dst_lookup_flow(sock_net(recv_sockets.sk6->sk),
\t\t\t\t\t  recv_sockets.sk6->sk, &fl6,
\t\t\t\t\t  NULL);
static int rxe_udp_encap_recv(struct sock *sk, struct sk_buff *skb)
{
\tif (!rxe && is_vlan_dev(ndev))
\t\trxe = rxe_get_dev_from_net(vlan_dev_real_dev(ndev));
\tif (!rxe)
\t\tgoto drop;
}
void rxe_net_exit(void)
{
\trelease();
}
int rxe_net_init(void)
{
\tint err;

\terr = 0;
}
"""


def test_edits_of_the_network_part() -> None:
    text = rxe.apply_edits("rxe_net.c", NET)
    assert "init_net, &fl" not in text
    assert text.count("dev_net(ndev)") == 2
    assert "recv_sockets.sk6->sk" not in text
    assert (
        "vlan_dev_real_dev(ndev));\n\tif (!rxe)\n\t\trxe = lab_device_below(ndev);\n\tif (!rxe)\n\t\tgoto drop;"
        in text
    )
    assert text.index("lab_device_below(struct") < text.index("rxe_udp_encap_recv(struct sock")
    assert "void rxe_net_exit(void)\n{\n\tunregister_pernet_subsys(&lab_namespaces);\n\trelease();" in text
    assert "{\n\tint err = register_pernet_subsys(&lab_namespaces);\n\n\tif (err)\n\t\treturn err;\n" in text
    assert "SPDX" not in text, "the comment at the head of a part does not go into the driver"


def test_the_gid_table_is_short() -> None:
    text = "\tRXE_PORT_GID_TBL_LEN\t\t= 1024,\n\tRXE_PORT_MAX_MSG_SZ\t\t= (1UL << 31),\n"
    edited = rxe.apply_edits("rxe_param.h", text)
    assert edited == "\tRXE_PORT_GID_TBL_LEN = 64,\n\tRXE_PORT_MAX_MSG_SZ\t\t= (1UL << 31),\n"


def test_another_source_is_refused() -> None:
    """A kernel whose rxe differs must stop the build, never be built half edited."""
    with pytest.raises(LabError, match="fits 0 places instead of one: this kernel's rxe differs"):
        rxe.apply_edits("rxe_net.c", NET.replace("&init_net, &fl", "net, &fl"))
    with pytest.raises(LabError, match="fits 0 places"):
        rxe.apply_edits("rxe_net.c", rxe.apply_edits("rxe_net.c", NET))
    with pytest.raises(LabError, match="fits 2 places"):
        rxe.apply_edits("rxe_net.c", NET + NET)


def test_a_replacement_is_taken_literally() -> None:
    edit = rxe.Edit("x", "why", "A", r"a\n\1\g<0>")
    assert rxe.apply_edits("x", "-A-", (edit,)) == r"-a\n\1\g<0>-"
    assert rxe.apply_edits("y", "-A-", (edit,)) == "-A-"


def test_the_name_follows_the_edits(monkeypatch: pytest.MonkeyPatch) -> None:
    before = rxe.directory_name("6.12")
    assert before == rxe.directory_name("6.12") != rxe.directory_name("6.13")
    monkeypatch.setattr(rxe, "EDITS", rxe.EDITS[:-1])
    assert rxe.directory_name("6.12") != before


@pytest.mark.parametrize(
    ("text", "compiler"),
    [("CC = $(CROSS_COMPILE)gcc-12\n", "gcc-12"), ("CC = x86_64-linux-gnu-gcc-14", "gcc-14"), ("", "gcc")],
)
def test_compiler_of_the_headers(text: str, compiler: str) -> None:
    assert rxe.find_compiler(text) == compiler


@pytest.mark.parametrize("name", ["device_below", "sockets", "options"])
def test_parts_have_code(name: str) -> None:
    assert rxe.part(name).startswith("st")
    assert "Copyright" not in rxe.part(name)
