# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Makes a Kubernetes node of a lab node. Arguments: prepare POD-NETWORK SERVICE API | join NODE-ADDRESS
# prepare starts containerd and loads the test image; join starts the kubelet with the files that came before it.
# shellcheck shell=sh
set -eu
KUBE=/opt/rdma-kube
PATH=$KUBE/bin:$PATH
MARK=/run/rdma-lab/kube

prepare() {
    pods=$1 service=$2 api=$3
    if [ -e "$MARK" ]; then return; fi
    for module in overlay br_netfilter veth nft_chain_nat nft_masq; do modprobe "$module"; done
    echo 1 > /proc/sys/net/ipv4/ip_forward
    mkdir -p /etc/containerd /etc/cni/net.d /etc/kubernetes /run/rdma-lab
    cp "$KUBE/etc/containerd.toml" /etc/containerd/config.toml
    sed "s|@PODS@|$pods|" "$KUBE/etc/cni.conflist" > /etc/cni/net.d/10-lab.conflist
    cp "$KUBE/etc/containerd.service" "$KUBE/etc/kubelet.service" /etc/systemd/system/
    # The address of the service and the way out of pods; a lab has no kube-proxy.
    nft -f - <<END
table ip rdma_lab {
    chain in { type nat hook prerouting priority dstnat; ip daddr $service tcp dport 443 dnat to $api; }
    chain out { type nat hook output priority -100; ip daddr $service tcp dport 443 dnat to $api; }
    chain way { type nat hook postrouting priority srcnat; ip saddr $pods oifname "eth0" masquerade; }
}
END
    systemctl daemon-reload
    systemctl start containerd
    for image in "$KUBE"/images/*.tar; do ctr --namespace k8s.io images import "$image"; done
    # The image of DRANET leads here.
    mkdir -p /var/lib/kubelet/plugins/rdma-lab
    touch /var/lib/kubelet/plugins/rdma-lab/dranet
    mount --bind "$KUBE/bin/dranet" /var/lib/kubelet/plugins/rdma-lab/dranet
    # The first container takes the longest; whoever comes later finds everything read already.
    ctr --namespace k8s.io run --rm --runc-binary "$KUBE/bin/runc" lab.test/pod:1 first /labpod show > /dev/null
    kubelet --version
    touch "$MARK"
}

join() {
    address=$1
    printf 'NODE_ADDRESS=%s\n' "$address" > /etc/kubernetes/node.env
    chmod 600 /etc/kubernetes/*.key
    systemctl restart kubelet
}

command=$1
shift
"$command" "$@"
