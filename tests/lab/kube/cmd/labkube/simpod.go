// Copyright: (c) 2026, The rdma.k8s authors
// GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later

package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
)

func (s *simulation) enqueuePod(object any) {
	pod, ok := object.(*corev1.Pod)
	if ok && s.names[pod.Spec.NodeName] != 0 {
		s.queue.Add(pod.Namespace + "/" + pod.Name)
	}
}

func (s *simulation) forgetPod(object any) {
	if unknown, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = unknown.Obj
	}
	pod, ok := object.(*corev1.Pod)
	if !ok || s.names[pod.Spec.NodeName] == 0 {
		return
	}
	s.unprepare(pod)
	s.lock.Lock()
	defer s.lock.Unlock()
	delete(s.stopping, pod.UID)
	delete(s.ready, pod.UID)
	delete(s.told, pod.UID)
}

func seconds(pod *corev1.Pod, annotation string, otherwise time.Duration) time.Duration {
	if value, err := strconv.ParseFloat(pod.Annotations[annotation], 64); err == nil && value >= 0 {
		return time.Duration(value * float64(time.Second))
	}
	return otherwise
}

// syncPod takes a pod one step further, as the kubelet of its node would, and says when the next step is due.
func (s *simulation) syncPod(ctx context.Context, key string) (time.Duration, error) {
	namespace, name, err := cache.SplitMetaNamespaceKey(key)
	if err != nil {
		return 0, err
	}
	pod, err := s.pods.Pods(namespace).Get(name)
	if apierrors.IsNotFound(err) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	node, err := s.nodes.Get(pod.Spec.NodeName)
	if apierrors.IsNotFound(err) {
		return resync, nil
	}
	if err != nil {
		return 0, err
	}
	if has(node, faultHeartbeat) || s.rebooting(node.Name) {
		return 2 * resync, nil
	}
	ended := pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
	switch {
	case pod.DeletionTimestamp != nil:
		return s.terminate(ctx, pod, node, ended)
	case ended:
		s.unprepare(pod)
		return 0, nil
	case pod.Status.Phase == corev1.PodRunning:
		return s.running(ctx, pod, node)
	}
	return s.start(ctx, pod, node)
}

// start waits for the claims and for the time that a start takes, then says that the pod runs.
func (s *simulation) start(ctx context.Context, pod *corev1.Pod, node *corev1.Node) (time.Duration, error) {
	claims, trouble, err := s.claimsOf(pod)
	if err != nil {
		return 0, err
	}
	if trouble == "" && len(claims) > 0 && has(node, faultPrepare) {
		trouble = "the driver cannot prepare the claim: played by a fault of this node"
	}
	if trouble != "" {
		return 4 * resync, s.tell(ctx, pod, "FailedPrepareDynamicResources", trouble)
	}
	if has(node, faultDriver) && isDriver(pod) {
		return 4 * resync, s.tell(ctx, pod, "Unhealthy", "the driver does not get ready: played by a fault of this node")
	}
	s.lock.Lock()
	begin, known := s.ready[pod.UID]
	if !known {
		begin = time.Now().Add(seconds(pod, startAnnotation, 200*time.Millisecond))
		s.ready[pod.UID] = begin
	}
	s.lock.Unlock()
	if left := time.Until(begin); left > 0 {
		return left + time.Millisecond, nil
	}
	for _, claim := range claims {
		if err := s.prepare(ctx, pod, claim); err != nil {
			return 0, err
		}
	}
	return 0, s.write(ctx, pod, func(status *corev1.PodStatus) {
		now := metav1.Now()
		status.Phase, status.StartTime = corev1.PodRunning, &now
		status.HostIP = node.Status.Addresses[0].Address
		status.HostIPs = []corev1.HostIP{{IP: status.HostIP}}
		status.PodIP = status.HostIP
		if !pod.Spec.HostNetwork {
			status.PodIP = podAddress(node, pod)
		}
		status.PodIPs = []corev1.PodIP{{IP: status.PodIP}}
		state := corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}}
		status.ContainerStatuses = containers(pod, state, 0)
		for _, kind := range []corev1.PodConditionType{
			corev1.PodReadyToStartContainers, corev1.PodInitialized, corev1.ContainersReady, corev1.PodReady,
		} {
			setPodCondition(status, kind, corev1.ConditionTrue)
		}
	})
}

// running ends a pod whose time is over, or all of a node whose containers crash.
func (s *simulation) running(ctx context.Context, pod *corev1.Pod, node *corev1.Node) (time.Duration, error) {
	code, over := 0, false
	if text, limited := pod.Annotations[runAnnotation]; limited {
		left := time.Until(pod.Status.StartTime.Add(seconds(pod, runAnnotation, 0)))
		if left > 0 && !has(node, faultCrash) {
			return left + 10*time.Millisecond, nil
		}
		over = left <= 0 && text != ""
		code, _ = strconv.Atoi(pod.Annotations[exitAnnotation])
	}
	if has(node, faultCrash) {
		code, over = 137, true
	}
	if !over {
		return s.publish(pod), nil
	}
	again := pod.Spec.RestartPolicy == corev1.RestartPolicyAlways ||
		(pod.Spec.RestartPolicy == corev1.RestartPolicyOnFailure && code != 0)
	if again {
		return s.restart(ctx, pod, code)
	}
	s.unprepare(pod)
	return 0, s.write(ctx, pod, func(status *corev1.PodStatus) { finish(pod, status, code) })
}

// restart counts a restart once per period, as a kubelet that backs off would.
func (s *simulation) restart(ctx context.Context, pod *corev1.Pod, code int) (time.Duration, error) {
	const backOff = 10 * time.Second
	if len(pod.Status.ContainerStatuses) > 0 {
		if running := pod.Status.ContainerStatuses[0].State.Running; running != nil {
			if left := time.Until(running.StartedAt.Add(backOff)); left > 0 {
				return left, nil
			}
		}
	}
	return backOff, s.write(ctx, pod, func(status *corev1.PodStatus) {
		state := corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Now()}}
		restarts := int32(1)
		if len(status.ContainerStatuses) > 0 {
			restarts += status.ContainerStatuses[0].RestartCount
		}
		status.ContainerStatuses = containers(pod, state, restarts)
		for position := range status.ContainerStatuses {
			status.ContainerStatuses[position].LastTerminationState.Terminated =
				&corev1.ContainerStateTerminated{ExitCode: int32(code), Reason: "Error", FinishedAt: metav1.Now()}
		}
	})
}

// terminate lets a pod go when it has taken its time: what it wants, at most its grace.
func (s *simulation) terminate(ctx context.Context, pod *corev1.Pod, node *corev1.Node, ended bool) (time.Duration, error) {
	if has(node, faultTerminate) {
		return 2 * resync, nil
	}
	grace := time.Duration(ptr.Deref(pod.DeletionGracePeriodSeconds, 0)) * time.Second
	if pod.Status.Phase == corev1.PodRunning {
		s.lock.Lock()
		begin, known := s.stopping[pod.UID]
		if !known {
			// The deletion time stands behind the grace; a simulator that was started anew knows the beginning by it.
			begin = stop{at: pod.DeletionTimestamp.Add(-grace)}
			s.stopping[pod.UID] = begin
		}
		s.lock.Unlock()
		wanted := min(seconds(pod, stopAnnotation, time.Second), grace)
		if left := time.Until(begin.at.Add(wanted)); left > 0 {
			return left + 10*time.Millisecond, nil
		}
	}
	s.unprepare(pod)
	if !ended {
		code := 0
		if seconds(pod, stopAnnotation, time.Second) > grace {
			code = 137
		}
		if err := s.write(ctx, pod, func(status *corev1.PodStatus) { finish(pod, status, code) }); err != nil {
			return 0, err
		}
	}
	options := metav1.DeleteOptions{
		GracePeriodSeconds: ptr.To(int64(0)), Preconditions: &metav1.Preconditions{UID: &pod.UID},
	}
	err := s.client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, options)
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return 0, nil
	}
	return 0, err
}

// claimsOf are the claims of a pod, or why they cannot be prepared: a kubelet insists on the same.
func (s *simulation) claimsOf(pod *corev1.Pod) ([]*resourcev1.ResourceClaim, string, error) {
	found := []*resourcev1.ResourceClaim{}
	for _, reference := range pod.Spec.ResourceClaims {
		name := ptr.Deref(reference.ResourceClaimName, "")
		for _, status := range pod.Status.ResourceClaimStatuses {
			if status.Name == reference.Name {
				if status.ResourceClaimName == nil {
					name = "-"
				} else {
					name = *status.ResourceClaimName
				}
			}
		}
		if name == "-" {
			continue // its template made no claim
		}
		if name == "" {
			return nil, fmt.Sprintf("the claim %s does not exist yet", reference.Name), nil
		}
		claim, err := s.claims.ResourceClaims(pod.Namespace).Get(name)
		if apierrors.IsNotFound(err) {
			return nil, fmt.Sprintf("the claim %s is not there", name), nil
		}
		if err != nil {
			return nil, "", err
		}
		if claim.Status.Allocation == nil {
			return nil, fmt.Sprintf("the claim %s is not allocated", name), nil
		}
		if !slices.ContainsFunc(claim.Status.ReservedFor, func(consumer resourcev1.ResourceClaimConsumerReference) bool {
			return consumer.UID == pod.UID
		}) {
			return nil, fmt.Sprintf("the claim %s is not reserved for this pod", name), nil
		}
		found = append(found, claim)
	}
	return found, "", nil
}

// prepare notes that a claim is prepared and writes what the driver knows of its devices, as DRANET does.
func (s *simulation) prepare(ctx context.Context, pod *corev1.Pod, claim *resourcev1.ResourceClaim) error {
	s.lock.Lock()
	if s.prepared[claim.UID] == nil {
		s.prepared[claim.UID] = map[types.UID]bool{}
	}
	s.prepared[claim.UID][pod.UID] = true
	s.lock.Unlock()
	if len(claim.Status.Devices) > 0 {
		return nil
	}
	copied := claim.DeepCopy()
	for _, result := range claim.Status.Allocation.Devices.Results {
		if result.Driver != s.options.driver {
			continue
		}
		slice, err := s.sliceDevice(result.Pool, result.Device)
		if err != nil {
			return err
		}
		network := &resourcev1.NetworkDeviceData{}
		if slice != nil {
			network.InterfaceName = ptr.Deref(slice.Attributes["dra.net/ifName"].StringValue, "")
			network.HardwareAddress = ptr.Deref(slice.Attributes["dra.net/mac"].StringValue, "")
			if child := s.childOf(result.Pool, result.Device); child != "" {
				network.IPs = []string{child}
			}
		}
		copied.Status.Devices = append(copied.Status.Devices, resourcev1.AllocatedDeviceStatus{
			Driver: result.Driver, Pool: result.Pool, Device: result.Device, NetworkData: network,
			Conditions: []metav1.Condition{{
				Type: "Ready", Status: metav1.ConditionTrue, Reason: "Simulated",
				Message: "said by the simulator", LastTransitionTime: metav1.Now(),
			}},
		})
	}
	if len(copied.Status.Devices) == 0 {
		return nil
	}
	_, err := s.client.ResourceV1().ResourceClaims(claim.Namespace).UpdateStatus(ctx, copied, metav1.UpdateOptions{})
	return err
}

func (s *simulation) sliceDevice(pool, device string) (*resourcev1.Device, error) {
	number, known := s.names[pool]
	if !known {
		return nil, nil
	}
	for rail := range s.options.rails {
		if made := newDevice(number, rail, ""); made.Name == device {
			return &made, nil
		}
	}
	return nil, nil
}

func (s *simulation) unprepare(pod *corev1.Pod) {
	s.lock.Lock()
	defer s.lock.Unlock()
	for claim, pods := range s.prepared {
		delete(pods, pod.UID)
		if len(pods) == 0 {
			delete(s.prepared, claim)
		}
	}
}

// tell writes an event about a pod that does not start, once for each reason, and says so in its status.
func (s *simulation) tell(ctx context.Context, pod *corev1.Pod, reason, text string) error {
	s.lock.Lock()
	known := s.told[pod.UID] == text
	s.told[pod.UID] = text
	s.lock.Unlock()
	if known {
		return nil
	}
	now := metav1.Now()
	event := &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{GenerateName: pod.Name + ".", Namespace: pod.Namespace},
		InvolvedObject: corev1.ObjectReference{
			APIVersion: "v1", Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID,
		},
		Reason: reason, Message: text, Type: corev1.EventTypeWarning, Count: 1, FirstTimestamp: now, LastTimestamp: now,
		Source: corev1.EventSource{Component: "kubelet", Host: pod.Spec.NodeName},
	}
	if _, err := s.client.CoreV1().Events(pod.Namespace).Create(ctx, event, metav1.CreateOptions{}); err != nil {
		return err
	}
	return s.write(ctx, pod, func(status *corev1.PodStatus) {
		state := corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}}
		status.ContainerStatuses = containers(pod, state, 0)
	})
}

func (s *simulation) write(ctx context.Context, pod *corev1.Pod, change func(*corev1.PodStatus)) error {
	copied := pod.DeepCopy()
	change(&copied.Status)
	_, err := s.client.CoreV1().Pods(pod.Namespace).UpdateStatus(ctx, copied, metav1.UpdateOptions{})
	return err
}

func containers(pod *corev1.Pod, state corev1.ContainerState, restarts int32) []corev1.ContainerStatus {
	found := make([]corev1.ContainerStatus, 0, len(pod.Spec.Containers))
	for _, container := range pod.Spec.Containers {
		runs := state.Running != nil
		found = append(found, corev1.ContainerStatus{
			Name: container.Name, Image: container.Image, ImageID: "simulated", State: state, Ready: runs, Started: &runs,
			RestartCount: restarts, ContainerID: "simulated://" + string(pod.UID),
		})
	}
	return found
}

func finish(pod *corev1.Pod, status *corev1.PodStatus, code int) {
	now := metav1.Now()
	status.Phase = corev1.PodSucceeded
	reason := "Completed"
	if code != 0 {
		status.Phase, reason = corev1.PodFailed, "Error"
	}
	restarts := int32(0)
	if len(status.ContainerStatuses) > 0 {
		restarts = status.ContainerStatuses[0].RestartCount
	}
	state := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
		ExitCode: int32(code), Reason: reason, StartedAt: ptr.Deref(status.StartTime, now), FinishedAt: now,
	}}
	status.ContainerStatuses = containers(pod, state, restarts)
	setPodCondition(status, corev1.ContainersReady, corev1.ConditionFalse)
	setPodCondition(status, corev1.PodReady, corev1.ConditionFalse)
}

func setPodCondition(status *corev1.PodStatus, kind corev1.PodConditionType, value corev1.ConditionStatus) {
	now := metav1.Now()
	for position := range status.Conditions {
		if present := &status.Conditions[position]; present.Type == kind {
			if present.Status != value {
				present.Status, present.LastTransitionTime = value, now
			}
			return
		}
	}
	status.Conditions = append(status.Conditions, corev1.PodCondition{Type: kind, Status: value, LastTransitionTime: now})
}

// podAddress is an address in the node's block that depends on the pod alone.
func podAddress(node *corev1.Node, pod *corev1.Pod) string {
	number, last := 0, 1<<podBlock-3
	for _, letter := range string(pod.UID) {
		number = (number*31 + int(letter)) % last
	}
	var a, b, c, d int
	if _, err := fmt.Sscanf(node.Spec.PodCIDR, "%d.%d.%d.%d/", &a, &b, &c, &d); err != nil {
		return ""
	}
	return fmt.Sprintf("%d.%d.%d.%d", a, b, c, d+2+number)
}
