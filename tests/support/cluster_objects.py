# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Objects of a cluster with what a ClusterSnapshot takes from them, and more that it leaves out. Do not change them."""

from __future__ import annotations

from typing import Any

CREATED = "2026-11-01T00:00:00Z"

NODE: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {
        "name": "n1",
        "uid": "uid-n1",
        "creationTimestamp": CREATED,
        "labels": {
            "node.kubernetes.io/instance-type": "BM.GPU.H100.8",
            "feature.node.kubernetes.io/cpu-x": "true",
            "feature.node.kubernetes.io/network-sriov.capable": "true",
            "beta.kubernetes.io/os": "linux",
            "team": "a",
        },
        "annotations": {"rdma-k8s/roll-state": "Done", "other/annotation": "x"},
    },
    "spec": {
        "podCIDR": "10.244.0.0/25",
        "podCIDRs": ["10.244.0.0/25"],
        "providerID": "ocid1.instance.oc1.iad.abc",
        "unschedulable": True,
        "taints": [
            {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"},
            {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"},
        ],
    },
    "status": {
        "addresses": [
            {"type": "InternalIP", "address": "10.140.77.19"},
            {"type": "Hostname", "address": "n1"},
        ],
        "capacity": {
            "cpu": "224",
            "memory": "2Ti",
            "nvidia.com/gpu": "8",
            "rdma/hca": 1000,
            "hugepages-1Gi": "0",
            "hugepages-2Mi": "4Gi",
        },
        "allocatable": {"cpu": "220", "nvidia.com/gpu": "8"},
        "conditions": [
            {"type": "MemoryPressure", "status": "False", "lastTransitionTime": CREATED},
            {"type": "Ready", "status": "True", "lastTransitionTime": "2026-11-02T00:00:00Z"},
        ],
        "nodeInfo": {
            "architecture": "amd64",
            "osImage": "Oracle Linux Server 8.10",
            "kernelVersion": "5.15.0",
            "containerRuntimeVersion": "cri-o://1.34.0",
            "kubeletVersion": "v1.34.1",
            "bootID": "boot-n1",
        },
        "images": [{"names": ["x"], "sizeBytes": 1}],
    },
}

SLICE: dict[str, Any] = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceSlice",
    "metadata": {"name": "n1-dra-net", "creationTimestamp": CREATED},
    "spec": {
        "driver": "dra.net",
        "nodeName": "n1",
        "pool": {"name": "n1", "generation": 3, "resourceSliceCount": 2},
        "devices": [
            {
                "name": "pci-0000-0c-00-0",
                "attributes": {
                    "dra.net/ifName": {"string": "rdma0"},
                    "dra.net/rdma": {"bool": True},
                    "dra.net/mtu": {"int": 4220},
                    "resource.kubernetes.io/pcieRoot": {"string": "pci0000:0b"},
                    "firmware": {"version": "28.43.2566"},
                    "rails": {"strings": ["a", "b"]},
                },
                "capacity": {"bandwidth": {"value": "400G"}},
                "taints": [{"key": "rdma-k8s/roll", "value": "x", "effect": "NoExecute"}],
            }
        ],
    },
}

CLAIM: dict[str, Any] = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceClaim",
    "metadata": {
        "namespace": "ml",
        "name": "train-abc",
        "uid": "uid-c",
        "creationTimestamp": CREATED,
        "deletionTimestamp": "2026-11-03T00:00:00Z",
        "ownerReferences": [{"kind": "Pod", "name": "train-0", "uid": "uid-p"}],
    },
    "spec": {
        "devices": {
            "requests": [
                {
                    "name": "nic",
                    "exactly": {
                        "deviceClassName": "rdma",
                        "allocationMode": "All",
                        "selectors": [{"cel": {"expression": 'device.attributes["dra.net"].rdma'}}],
                        "tolerations": [
                            {"key": "rdma-k8s/roll", "value": "x", "effect": "NoExecute"},
                            {"operator": "Exists"},
                        ],
                    },
                },
                {
                    "name": "gpu",
                    "firstAvailable": [
                        {"name": "big", "deviceClassName": "h200", "count": 2},
                        {"name": "small", "deviceClassName": "h100"},
                    ],
                },
            ],
            "constraints": [
                {"requests": ["nic", "gpu"], "matchAttribute": "resource.kubernetes.io/pcieRoot"},
                {"distinctAttribute": "dra.net/ifName"},
            ],
            "config": [
                {
                    "requests": ["nic"],
                    "opaque": {"driver": "dra.net", "parameters": {"interface": {"name": "net0"}}},
                }
            ],
        }
    },
    "status": {
        "allocation": {
            "devices": {
                "results": [
                    {"request": "nic", "driver": "dra.net", "pool": "n1", "device": "pci-0000-0c-00-0"}
                ]
            },
            "nodeSelector": {
                "nodeSelectorTerms": [
                    {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}
                ]
            },
        },
        "reservedFor": [{"resource": "pods", "name": "train-0", "uid": "uid-p"}],
        "devices": [
            {
                "driver": "dra.net",
                "pool": "n1",
                "device": "pci-0000-0c-00-0",
                "conditions": [{"type": "Ready", "status": "True"}],
                "networkData": {"interfaceName": "net0", "ips": ["10.208.13.19/12"]},
            }
        ],
    },
}

_ARGS = ["--v=4", "--cloud-provider-options=oke.rdma-child-ipv4-cidr=10.208.0.0/12"]

DAEMONSET: dict[str, Any] = {
    "apiVersion": "apps/v1",
    "kind": "DaemonSet",
    "metadata": {"namespace": "kube-system", "name": "dranet", "uid": "uid-ds", "generation": 4},
    "spec": {
        "selector": {"matchLabels": {"k": "v", "app": "dranet"}},
        "updateStrategy": {"type": "OnDelete"},
        "template": {
            "metadata": {"labels": {"k": "v", "app": "dranet"}},
            "spec": {
                "serviceAccountName": "dranet",
                "priorityClassName": "system-node-critical",
                "hostNetwork": True,
                "tolerations": [{"operator": "Exists", "effect": "NoSchedule"}],
                "initContainers": [{"name": "wait", "image": "example.invalid/wait:1"}],
                "containers": [
                    {
                        "name": "dranet",
                        "image": "example.invalid/networking/dranet:v1.4.0",
                        "args": _ARGS,
                        "env": [
                            {"name": "NODE_NAME", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
                            {"name": "PASSWORD", "value": "s3cret"},
                        ],
                        "resources": {"requests": {"cpu": "100m"}},
                        "readinessProbe": {"httpGet": {"path": "/healthz", "port": 9177}},
                        "securityContext": {"privileged": True},
                        "volumeMounts": [
                            {"name": "registry", "mountPath": "/var/lib/kubelet/plugins_registry"},
                            {"name": "oca", "mountPath": "/etc/oca", "readOnly": True},
                            {"name": "settings", "mountPath": "/etc/settings"},
                            {"name": "tmp", "mountPath": "/tmp"},
                        ],
                    }
                ],
                "volumes": [
                    {"name": "registry", "hostPath": {"path": "/var/lib/kubelet/plugins_registry"}},
                    {"name": "oca", "hostPath": {"path": "/etc/oca", "type": "DirectoryOrCreate"}},
                    {"name": "settings", "configMap": {"name": "dranet-settings"}},
                    {"name": "tmp", "emptyDir": {}},
                ],
            },
        },
    },
    "status": {
        "desiredNumberScheduled": 2,
        "numberReady": 1,
        "updatedNumberScheduled": 2,
        "numberAvailable": 1,
        "observedGeneration": 3,
    },
}

ROLE: dict[str, Any] = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "ClusterRole",
    "metadata": {"name": "dranet"},
    "rules": [
        {"apiGroups": [""], "resources": ["nodes"], "verbs": ["get"]},
        {"nonResourceURLs": ["/metrics"], "verbs": ["get"]},
        {
            "apiGroups": ["resource.k8s.io"],
            "resources": ["resourceclaims/driver"],
            "verbs": ["associated-node:patch", "associated-node:update"],
            "resourceNames": ["dra.net"],
        },
    ],
}

BINDING: dict[str, Any] = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "ClusterRoleBinding",
    "metadata": {"name": "dranet"},
    "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "dranet"},
    "subjects": [{"kind": "ServiceAccount", "name": "dranet", "namespace": "kube-system"}],
}

POD: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {
        "namespace": "kube-system",
        "name": "dranet-x",
        "labels": {"k": "v", "app": "dranet", "controller-revision-hash": "5c"},
        "ownerReferences": [{"kind": "DaemonSet", "name": "dranet", "uid": "uid-ds"}],
    },
    "spec": {
        "nodeName": "n1",
        "initContainers": [{"name": "wait", "image": "example.invalid/wait:1"}],
        "containers": [
            {"name": "dranet", "image": "example.invalid/networking/dranet:v1.4.0", "args": _ARGS}
        ],
    },
    "status": {
        "phase": "Running",
        "conditions": [{"type": "Ready", "status": "True"}],
        "containerStatuses": [
            {
                "name": "dranet",
                "restartCount": 2,
                "imageID": "example.invalid/networking/dranet@sha256:abc",
                "state": {"running": {"startedAt": "2026-11-02T03:04:05Z"}},
            }
        ],
    },
}

NODE_STATE: dict[str, Any] = {
    "apiVersion": "sriovnetwork.openshift.io/v1",
    "kind": "SriovNetworkNodeState",
    "metadata": {
        "namespace": "sriov",
        "name": "n1",
        "generation": 4,
        "annotations": {
            "sriovnetwork.openshift.io/desired-state": "Idle",
            "sriovnetwork.openshift.io/current-state": "Idle",
        },
    },
    "spec": {
        "interfaces": [{"pciAddress": "0000:0c:00.0", "numVfs": 8, "mtu": 4220, "linkType": "eth"}],
        "system": {"rdmaMode": "exclusive"},
    },
    "status": {
        "syncStatus": "Succeeded",
        "system": {"rdmaMode": "shared"},
        "interfaces": [
            {
                "pciAddress": "0000:0c:00.0",
                "name": "ens1f0np0",
                "vendor": "15b3",
                "deviceID": "1021",
                "driver": "mlx5_core",
                "mac": "b8:3f:d2:0d:13:00",
                "mtu": 9000,
                "linkType": "ETH",
                "linkSpeed": "400000 Mb/s",
                "totalvfs": 16,
                "numVfs": 3,
                "Vfs": [
                    {"vfID": 0, "driver": "mlx5_core", "mtu": 1500, "guid": "0000:0000:0000:0000"},
                    {"vfID": 1, "driver": "vfio-pci", "mtu": 4220, "guid": "0011:0000:0000:0000"},
                ],
            },
            {"pciAddress": "0000:0c:00.1", "totalvfs": 16},
        ],
    },
}

LEASE: dict[str, Any] = {
    "apiVersion": "coordination.k8s.io/v1",
    "kind": "Lease",
    "metadata": {"namespace": "kube-system", "name": "rdma-roll"},
    "spec": {
        "holderIdentity": "ann@control-1",
        "acquireTime": "2026-11-01T00:00:00.000000Z",
        "renewTime": "2026-11-01T00:01:00.000000Z",
        "leaseDurationSeconds": 60,
        "leaseTransitions": 1,
    },
}

ROLL: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"namespace": "kube-system", "name": "rdma-roll-3f2a9c", "creationTimestamp": CREATED},
    "data": {
        "plan": '{"kind": "range", "old": "10.240.0.0/15", "new": "10.208.0.0/12", "strategy": "drain_all", '
        '"fence": "cordon", "budget": 2, "nodes": ["n2", "n1"], "parent": "77be01", "prefix": "rdma-k8s/"}',
        "record": '{"phase": "Paused", "switched": true, "started": "2026-11-01T00:00:10Z", '
        '"reason": "the budget is used up", "kept": "{}"}',
    },
}

BUDGET: dict[str, Any] = {
    "apiVersion": "policy/v1",
    "kind": "PodDisruptionBudget",
    "metadata": {"namespace": "ml", "name": "train"},
    "spec": {"minAvailable": 2, "selector": {"matchLabels": {"job": "train"}}},
    "status": {"disruptionsAllowed": 0, "currentHealthy": 2, "desiredHealthy": 2, "expectedPods": 2},
}
