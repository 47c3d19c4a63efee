// Copyright: (c) 2026, The rdma.k8s authors
// GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later

package main

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

const (
	// rangeOption is what a pod of the driver is told on its command line (F94).
	rangeOption    = "--cloud-provider-options=oke.rdma-child-ipv4-cidr="
	rangeAttribute = "oke.dra.net/rdmaChildIpv4Cidr"
	// publishDelay passes between a driver that is ready and its slices.
	publishDelay = time.Second
)

// driverSets are the DaemonSets that a driver consists of, of whatever namespace.
var driverSets = []string{"dranet", "rdma-k8s-provider"}

// isDriver tells whether a pod was made for one of the DaemonSets of the driver.
func isDriver(pod *corev1.Pod) bool {
	owner := metav1.GetControllerOf(pod)
	return owner != nil && owner.Kind == "DaemonSet" && slices.Contains(driverSets, owner.Name)
}

// rangeIn is the child range on the command line of a pod of the driver; empty when none is there.
func rangeIn(pod *corev1.Pod) string {
	for _, container := range pod.Spec.Containers {
		for _, word := range slices.Concat(container.Command, container.Args) {
			if value, found := strings.CutPrefix(word, rangeOption); found {
				return value
			}
		}
	}
	return ""
}

// publish notes the range of a pod of the driver that runs, a while after it began to, and says how long that is yet.
func (s *simulation) publish(pod *corev1.Pod) time.Duration {
	value := rangeIn(pod)
	if value == "" || !isDriver(pod) {
		return 0
	}
	s.lock.Lock()
	defer s.lock.Unlock()
	// A simulator that was started anew does not know when the pod began: long ago.
	if begin, known := s.ready[pod.UID]; known {
		if left := time.Until(begin.Add(publishDelay)); left > 0 {
			return left + 10*time.Millisecond
		}
	}
	if s.ranges[pod.Spec.NodeName] != value {
		s.ranges[pod.Spec.NodeName] = value
		s.nodeQ.Add(pod.Spec.NodeName)
	}
	return 0
}

// rangeOf is what the driver of a node publishes; empty when it publishes no range.
func (s *simulation) rangeOf(node string) string {
	s.lock.Lock()
	defer s.lock.Unlock()
	return s.ranges[node]
}

// forgetRange is for a node that is gone: one of its name that joins publishes what its own driver is told.
func (s *simulation) forgetRange(node string) {
	s.lock.Lock()
	defer s.lock.Unlock()
	delete(s.ranges, node)
}

// publishedRange is the range that a slice shows.
func publishedRange(slice *resourcev1.ResourceSlice) string {
	for _, device := range slice.Spec.Devices {
		if attribute, found := device.Attributes[rangeAttribute]; found {
			return ptr.Deref(attribute.StringValue, "")
		}
	}
	return ""
}

// childOf is the address of the child that the driver of a node makes for a device now; empty when it makes none.
func (s *simulation) childOf(node, device string) string {
	value := s.rangeOf(node)
	for rail := range s.options.rails {
		if value != "" && newDevice(s.names[node], rail, "").Name == device {
			return childAddress(value, s.names[node], rail)
		}
	}
	return ""
}
