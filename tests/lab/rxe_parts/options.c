/*
 * Copyright: (c) 2026, The rdma.k8s authors
 * GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
 * SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Part of the edited rxe: goes into rxe_verbs.c, behind its includes.
 */

static bool lab_parent = true;
module_param(lab_parent, bool, 0644);
MODULE_PARM_DESC(lab_parent, "the device sits below the hardware of its NIC in sysfs");

static bool lab_roce_v1;
module_param(lab_roce_v1, bool, 0644);
MODULE_PARM_DESC(lab_roce_v1, "every address also has a RoCE v1 GID");

static char *lab_ib_link = "none";
module_param(lab_ib_link, charp, 0644);
MODULE_PARM_DESC(lab_ib_link, "name of the device that claims an InfiniBand link layer");

/* Its presence lets the device move to another namespace in exclusive mode. */
static void lab_disassociate(struct ib_ucontext *context)
{
}
