/*
 * Copyright: (c) 2026, The rdma.k8s authors
 * GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
 * SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Part of the edited rxe: goes into rxe_net.c, in front of rxe_net_exit().
 */

struct lab_sockets {
	struct socket *v4;
	struct socket *v6;
};

static unsigned int lab_sockets_id;

static struct socket *lab_listen(struct net *net, bool ipv6)
{
	struct socket *sock = rxe_setup_udp_tunnel(net, htons(ROCE_V2_UDP_DPORT), ipv6);

	return IS_ERR(sock) ? NULL : sock;
}

static int __net_init lab_namespace_made(struct net *net)
{
	struct lab_sockets *sockets = net_generic(net, lab_sockets_id);

	/* The driver itself takes care of the first namespace. */
	if (!net_eq(net, &init_net)) {
		sockets->v4 = lab_listen(net, false);
		sockets->v6 = lab_listen(net, true);
	}
	return 0;
}

static void __net_exit lab_namespace_gone(struct net *net)
{
	struct lab_sockets *sockets = net_generic(net, lab_sockets_id);

	rxe_release_udp_tunnel(sockets->v4);
	rxe_release_udp_tunnel(sockets->v6);
}

static struct pernet_operations lab_namespaces = {
	.init = lab_namespace_made,
	.exit = lab_namespace_gone,
	.id = &lab_sockets_id,
	.size = sizeof(struct lab_sockets),
};
