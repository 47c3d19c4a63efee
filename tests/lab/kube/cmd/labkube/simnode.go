// Copyright: (c) 2026, The rdma.k8s authors
// GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later

package main

import (
	"fmt"
	"net/netip"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// Where simulated nodes live, by the same layout as the virtual ones: a position in the subnet of the primary VNIC, and
// from it the address of each rail in the network of the agent (F13). The virtual nodes stand before position 4000.
var (
	vnicSubnet = netip.MustParsePrefix("10.140.64.0/19")
	ocaNetwork = netip.MustParsePrefix("10.224.0.0/12")
	podNetwork = netip.MustParsePrefix("10.244.0.0/16")
)

const (
	vnicPosition = 4000
	vnicSize     = 1 << 13
	podBlock     = 6 // bits: 64 addresses of pods on each node
)

// cardBuses are the buses of the cards of an eight-card server (F129).
var cardBuses = []int{0x0c, 0x2a, 0x41, 0x58, 0x86, 0xa5, 0xbd, 0xd5}

// plus is the address so many behind the first of a network.
func plus(network netip.Prefix, offset int) netip.Addr {
	bytes := network.Addr().As4()
	value := uint32(bytes[0])<<24 | uint32(bytes[1])<<16 | uint32(bytes[2])<<8 | uint32(bytes[3])
	value += uint32(offset)
	return netip.AddrFrom4([4]byte{byte(value >> 24), byte(value >> 16), byte(value >> 8), byte(value)})
}

func railAddress(number, rail int) netip.Prefix {
	return netip.PrefixFrom(plus(ocaNetwork, rail*vnicSize+vnicPosition+number), ocaNetwork.Bits())
}

// childAddress is the address of a rail in the child range: as far from its begin as the rail's own is from the begin of
// the network of the agent (F13).
func childAddress(childRange string, number, rail int) string {
	network, err := netip.ParsePrefix(childRange)
	if err != nil || !network.Addr().Is4() {
		return ""
	}
	return netip.PrefixFrom(plus(network.Masked(), rail*vnicSize+vnicPosition+number), network.Bits()).String()
}

// newDevice is one RDMA NIC with the attributes that DRANET gives it (F100, F101), and with a child range that of F70.
func newDevice(number, rail int, childRange string) resourcev1.Device {
	bus, function := cardBuses[rail/2], rail%2
	place := fmt.Sprintf("0000:%02x:00.%d", bus, function)
	text := func(value string) resourcev1.DeviceAttribute {
		return resourcev1.DeviceAttribute{StringValue: &value}
	}
	whole := func(value int) resourcev1.DeviceAttribute {
		return resourcev1.DeviceAttribute{IntValue: ptr.To(int64(value))}
	}
	truth := func(value bool) resourcev1.DeviceAttribute {
		return resourcev1.DeviceAttribute{BoolValue: &value}
	}
	numa := 0
	if bus >= 0x80 {
		numa = 1
	}
	device := resourcev1.Device{
		Name: "pci-" + strings.NewReplacer(":", "-", ".", "-").Replace(place),
		Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{
			"dra.net/ifName":                  text(fmt.Sprintf("rdma%d", rail)),
			"dra.net/pciAddress":              text(place),
			"dra.net/mac":                     text(fmt.Sprintf("02:00:%02x:%02x:%02x:01", number>>8, number&0xff, rail)),
			"dra.net/numaNode":                whole(numa),
			"dra.net/mtu":                     whole(4220),
			"dra.net/encapsulation":           text("ether"),
			"dra.net/state":                   text("up"),
			"dra.net/type":                    text("device"),
			"dra.net/ipv4":                    text(railAddress(number, rail).String()),
			"dra.net/rdma":                    truth(true),
			"dra.net/rdmaDevice":              text(fmt.Sprintf("mlx5_%d", rail)),
			"dra.net/virtual":                 truth(false),
			"dra.net/sriov":                   truth(false),
			"resource.kubernetes.io/pcieRoot": text(fmt.Sprintf("pci0000:%02x", bus-1)),
		},
	}
	if childRange != "" {
		device.Attributes[rangeAttribute] = text(childRange)
	}
	return device
}

func (s *simulation) newNode(name string, number int) *corev1.Node {
	labels := map[string]string{
		corev1.LabelHostname: name, corev1.LabelOSStable: "linux", corev1.LabelArchStable: "amd64",
		corev1.LabelInstanceTypeStable: fmt.Sprintf("LAB.SIM.%d", s.options.rails), simulatedLabel: "true",
	}
	for _, entry := range s.options.labels {
		key, value, _ := strings.Cut(strings.ReplaceAll(entry, "{n}", fmt.Sprint(number)), "=")
		labels[key] = value
	}
	pods := netip.PrefixFrom(plus(podNetwork, (number-1)<<podBlock), 32-podBlock)
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
		Spec:       corev1.NodeSpec{PodCIDR: pods.String(), PodCIDRs: []string{pods.String()}, ProviderID: "lab://" + name},
	}
}

func (s *simulation) nodeStatus(node *corev1.Node, number int, ready bool, boot string) *corev1.NodeStatus {
	now := metav1.NewTime(time.Now().Truncate(time.Second))
	status := node.Status.DeepCopy()
	resources := corev1.ResourceList{
		corev1.ResourceCPU:    resource.MustParse("128"),
		corev1.ResourceMemory: resource.MustParse("2048Gi"),
		corev1.ResourcePods:   resource.MustParse("60"),
	}
	status.Capacity, status.Allocatable = resources, resources
	status.Addresses = []corev1.NodeAddress{
		{Type: corev1.NodeInternalIP, Address: plus(vnicSubnet, vnicPosition+number).String()},
		{Type: corev1.NodeHostName, Address: node.Name},
	}
	status.NodeInfo = corev1.NodeSystemInfo{
		MachineID: fmt.Sprintf("%032x", number), SystemUUID: fmt.Sprintf("%032x", number), BootID: boot,
		KernelVersion: "6.12.0-simulated", OSImage: "simulated", OperatingSystem: "linux", Architecture: "amd64",
		ContainerRuntimeVersion: "containerd://2.4.2", KubeletVersion: s.options.kubernetes,
	}
	for _, kind := range []corev1.NodeConditionType{
		corev1.NodeMemoryPressure, corev1.NodeDiskPressure, corev1.NodePIDPressure, corev1.NodeReady,
	} {
		wanted := corev1.NodeCondition{
			Type: kind, Status: corev1.ConditionFalse, Reason: "Simulated", Message: "said by the simulator",
			LastHeartbeatTime: now, LastTransitionTime: now,
		}
		if kind == corev1.NodeReady {
			wanted.Reason = "KubeletNotReady"
			if ready {
				wanted.Status, wanted.Reason = corev1.ConditionTrue, "KubeletReady"
			}
		}
		setCondition(status, wanted)
	}
	return status
}

func setCondition(status *corev1.NodeStatus, wanted corev1.NodeCondition) {
	for position := range status.Conditions {
		present := &status.Conditions[position]
		if present.Type == wanted.Type {
			if present.Status == wanted.Status {
				wanted.LastTransitionTime = present.LastTransitionTime
			}
			*present = wanted
			return
		}
	}
	status.Conditions = append(status.Conditions, wanted)
}

// sameStatus leaves times aside.
func sameStatus(one, other *corev1.NodeStatus) bool {
	if one.NodeInfo != other.NodeInfo || len(one.Conditions) != len(other.Conditions) || len(one.Addresses) == 0 {
		return false
	}
	for position := range one.Conditions {
		if one.Conditions[position].Status != other.Conditions[position].Status {
			return false
		}
	}
	return true
}
