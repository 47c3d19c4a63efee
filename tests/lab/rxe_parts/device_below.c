/*
 * Copyright: (c) 2026, The rdma.k8s authors
 * GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
 * SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Part of the edited rxe: goes into rxe_net.c, in front of rxe_udp_encap_recv().
 */

static int lab_device_of_lower(struct net_device *lower,
			       struct netdev_nested_priv *found)
{
	found->data = rxe_get_dev_from_net(lower);
	return found->data ? 1 : 0;
}

/* Like rxe_get_dev_from_net(), this takes a reference on the device. */
static struct rxe_dev *lab_device_below(struct net_device *upper)
{
	struct netdev_nested_priv found = {};

	rcu_read_lock();
	netdev_walk_all_lower_dev_rcu(upper, lab_device_of_lower, &found);
	rcu_read_unlock();
	return found.data;
}
