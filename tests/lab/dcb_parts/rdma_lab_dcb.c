// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Copyright: (c) 2026, The rdma.k8s authors
 * GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
 *
 * Gives DCB to NICs whose driver has none, so that the kernel's own DCB netlink and table of applications can be used
 * on a virtual node. Nothing behind it pauses or classifies a packet. What a driver decides is decided here the way
 * mlx5 does: a DSCP value has one priority, so a new entry of the table replaces the former one, and firmware
 * negotiates again when DCBX is set to nothing.
 *
 *   nics    interfaces that get DCB
 *   silent  those of them that take every setting and keep none of it
 */

#include <linux/dcbnl.h>
#include <linux/module.h>
#include <linux/netdevice.h>
#include <linux/rtnetlink.h>
#include <net/dcbnl.h>

#define MOST 16

static char *nics[MOST];
static int nics_count;
module_param_array(nics, charp, &nics_count, 0444);
MODULE_PARM_DESC(nics, "interfaces that get DCB");

static char *silent[MOST];
static int silent_count;
module_param_array(silent, charp, &silent_count, 0444);
MODULE_PARM_DESC(silent, "interfaces that forget what they are told");

static struct lab_nic {
	struct net_device *dev;
	const struct dcbnl_rtnl_ops *before;
	struct ieee_pfc pfc;
	u8 dcbx;
	bool forgets;
} held[MOST];
static int held_count;

static struct lab_nic *lab_find(struct net_device *dev)
{
	int i;

	for (i = 0; i < held_count; i++)
		if (held[i].dev == dev)
			return &held[i];
	return NULL;
}

static int lab_get_pfc(struct net_device *dev, struct ieee_pfc *pfc)
{
	struct lab_nic *nic = lab_find(dev);

	if (!nic)
		return -ENODEV;
	*pfc = nic->pfc;
	return 0;
}

static int lab_set_pfc(struct net_device *dev, struct ieee_pfc *pfc)
{
	struct lab_nic *nic = lab_find(dev);

	if (!nic)
		return -ENODEV;
	if (!nic->forgets) {
		nic->pfc.pfc_en = pfc->pfc_en;
		nic->pfc.delay = pfc->delay;
	}
	return 0;
}

static int lab_set_app(struct net_device *dev, struct dcb_app *app)
{
	struct lab_nic *nic = lab_find(dev);
	struct dcb_app former = *app;
	u8 mask;

	if (!nic)
		return -ENODEV;
	if (app->selector != IEEE_8021QAZ_APP_SEL_DSCP || app->protocol >= 64)
		return -EINVAL;
	if (nic->forgets)
		return 0;
	mask = dcb_ieee_getapp_mask(dev, app);
	for (former.priority = 0; former.priority < 8; former.priority++)
		if (mask & BIT(former.priority))
			dcb_ieee_delapp(dev, &former);
	return dcb_ieee_setapp(dev, app);
}

static int lab_del_app(struct net_device *dev, struct dcb_app *app)
{
	return dcb_ieee_delapp(dev, app);
}

static u8 lab_get_dcbx(struct net_device *dev)
{
	struct lab_nic *nic = lab_find(dev);

	return nic ? nic->dcbx : 0;
}

static u8 lab_set_dcbx(struct net_device *dev, u8 mode)
{
	struct lab_nic *nic = lab_find(dev);

	if (!nic || mode & DCB_CAP_DCBX_LLD_MANAGED || (mode && !(mode & DCB_CAP_DCBX_HOST)))
		return 1;
	if (!nic->forgets)
		nic->dcbx = mode ? mode : nic->dcbx & ~DCB_CAP_DCBX_HOST;
	return 0;
}

static const struct dcbnl_rtnl_ops lab_ops = {
	.ieee_getpfc = lab_get_pfc,
	.ieee_setpfc = lab_set_pfc,
	.ieee_setapp = lab_set_app,
	.ieee_delapp = lab_del_app,
	.getdcbx = lab_get_dcbx,
	.setdcbx = lab_set_dcbx,
};

static void lab_release(void)
{
	rtnl_lock();
	while (held_count) {
		struct lab_nic *nic = &held[--held_count];

		nic->dev->dcbnl_ops = nic->before;
		dev_put(nic->dev);
	}
	rtnl_unlock();
}

static int __init lab_init(void)
{
	int i, j;

	for (i = 0; i < nics_count; i++) {
		struct lab_nic *nic = &held[held_count];
		struct net_device *dev = dev_get_by_name(&init_net, nics[i]);

		if (!dev) {
			lab_release();
			return -ENODEV;
		}
		nic->dev = dev;
		nic->before = dev->dcbnl_ops;
		nic->pfc.pfc_cap = 8;
		nic->dcbx = DCB_CAP_DCBX_HOST | DCB_CAP_DCBX_VER_IEEE;
		for (j = 0; j < silent_count; j++)
			nic->forgets |= !strcmp(silent[j], nics[i]);
		held_count++;
		rtnl_lock();
		dev->dcbnl_ops = &lab_ops;
		rtnl_unlock();
	}
	return 0;
}

module_init(lab_init);
module_exit(lab_release);

MODULE_DESCRIPTION("DCB for the NICs of the lab");
MODULE_LICENSE("GPL");
