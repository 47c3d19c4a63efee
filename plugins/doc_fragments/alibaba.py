# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later


from __future__ import annotations


class ModuleDocFragment:
    # What modules have in common that ask Alibaba Cloud.
    DOCUMENTATION = r"""
options:
  cluster_id:
    description: Id of the ACK cluster, as the console shows it.
    type: str
    required: true
  region:
    description: Region of the cluster, such as V(cn-beijing). It decides who is asked. Without it the environment
      variables C(ALIBABA_CLOUD_REGION_ID) and C(ALICLOUD_REGION), in this order.
    type: str
  endpoint:
    description: Address of the service of ACK as V(HOST) or V(HOST:PORT). Without it the one of the region.
    type: str
  protocol:
    description: V(http) is for tests, and only with an O(endpoint) that is a loopback address.
    type: str
    choices: [https, http]
    default: https
  access_key_id:
    description:
      - Id of the access key. It comes with O(access_key_secret).
      - Without both, the environment variables C(ALIBABA_CLOUD_ACCESS_KEY_ID), C(ALIBABA_CLOUD_ACCESS_KEY_SECRET) and
        C(ALIBABA_CLOUD_SECURITY_TOKEN) count, then C(ALICLOUD_ACCESS_KEY), C(ALICLOUD_SECRET_KEY) and
        C(ALICLOUD_SECURITY_TOKEN), then the chain of the SDK, which looks for an OIDC role, profiles, the role of the
        instance and a URI with credentials.
    type: str
  access_key_secret:
    description: Secret of the access key.
    type: str
  security_token:
    description: Token of temporary credentials.
    type: str
  timeout:
    description: Seconds for one answer.
    type: float
    default: 10
  attempts:
    description: How often one question is asked when the service is busy, fails or does not answer, 1 to 10.
    type: int
    default: 5
notes:
  - Run it where the credentials are, most likely with C(delegate_to=localhost).
requirements:
  - alibabacloud-cs20151215 >= 7.2.3 (the SDK of ACK)
"""
