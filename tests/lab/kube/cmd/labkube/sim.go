// Copyright: (c) 2026, The rdma.k8s authors
// GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later

package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	resourcelisters "k8s.io/client-go/listers/resource/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"
)

// What a test may say to the simulator, as annotations.
const (
	// faultsAnnotation of a Node: faults in force, with commas.
	faultsAnnotation = "rdma-lab/faults"
	// Of a Pod: seconds until it starts, seconds it runs (without: for ever), its exit code, and seconds it takes to
	// end when asked (never more than its grace).
	startAnnotation = "rdma-lab/start-seconds"
	runAnnotation   = "rdma-lab/run-seconds"
	exitAnnotation  = "rdma-lab/exit-code"
	stopAnnotation  = "rdma-lab/stop-seconds"
	simulatedLabel  = "rdma-lab/simulated"
)

// Faults of a simulated node.
const (
	faultHeartbeat = "heartbeat" // the kubelet is gone: no lease, no status, pods stand still; it registers no more
	faultNotReady  = "not-ready" // the kubelet says that the node is not ready
	faultPrepare   = "prepare"   // no claim can be prepared
	faultTerminate = "terminate" // no pod ends
	faultSlices    = "slices"    // the driver publishes nothing
	faultCrash     = "crash"     // every container fails with 137
	faultReboot    = "reboot"    // the node boots once: not ready for a while, then another boot id; takes itself back
	faultDriver    = "driver"    // no pod of the driver that starts from then on becomes ready
)

const (
	leaseSeconds = 60
	rebootTime   = 8 * time.Second
	resync       = 500 * time.Millisecond
)

// simulation is all simulated nodes of one cluster.
type simulation struct {
	client  kubernetes.Interface
	options simOptions
	pods    corelisters.PodLister
	nodes   corelisters.NodeLister
	claims  resourcelisters.ResourceClaimLister
	slices  resourcelisters.ResourceSliceLister
	queue   workqueue.TypedRateLimitingInterface[string]
	nodeQ   workqueue.TypedRateLimitingInterface[string]

	lock     sync.Mutex
	names    map[string]int                   // node name -> its number
	stopping map[types.UID]stop               // pods that were asked to end
	ready    map[types.UID]time.Time          // pods whose containers may start from then on
	prepared map[types.UID]map[types.UID]bool // claim -> pods it is prepared for
	told     map[types.UID]string             // the last trouble that an event told of, by pod
	reboots  map[string]reboot                // nodes that boot, or have booted and still carry the fault
	ranges   map[string]string                // node -> child range that its driver publishes
}

type stop struct {
	at time.Time
}

// reboot is how long a node is down, and the boot id that it has then.
type reboot struct {
	until time.Time
	boot  string
}

type simOptions struct {
	nodes, rails, workers int
	prefix, driver        string
	heartbeat             time.Duration
	labels                []string
	kubernetes            string
}

func runSim(arguments []string) error {
	flags := flag.NewFlagSet("sim", flag.ContinueOnError)
	kubeconfig := flags.String("kubeconfig", "", "how to reach the API server")
	options := simOptions{kubernetes: version}
	flags.IntVar(&options.nodes, "nodes", 100, "how many nodes, 1 to 1000")
	flags.IntVar(&options.rails, "rails", 16, "RDMA NICs of a node; 0 publishes no slices")
	flags.IntVar(&options.workers, "workers", 8, "requests under way at once")
	flags.StringVar(&options.prefix, "prefix", "sim-", "names of the nodes are this and four digits")
	flags.StringVar(&options.driver, "driver", "dra.net", "name of the driver whose slices are published")
	flags.DurationVar(&options.heartbeat, "heartbeat", 20*time.Second, "time between two renewals of a node's lease")
	labels := flags.String("labels", "", "KEY=VALUE of every node, with commas; {n} stands for its number")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	if options.nodes < 1 || options.nodes > 1000 || options.rails < 0 || options.rails > 16 {
		return fmt.Errorf("--nodes must be 1 to 1000 and --rails 0 to 16")
	}
	options.labels = strings.FieldsFunc(*labels, func(r rune) bool { return r == ',' })
	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err != nil {
		return err
	}
	config.QPS = -1 // a thousand kubelets are not throttled together
	config.UserAgent = "rdma-lab-simulator"
	config.ContentType = "application/vnd.kubernetes.protobuf"
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	return newSimulation(client, options).run(ctx)
}

func newSimulation(client kubernetes.Interface, options simOptions) *simulation {
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[string](200*time.Millisecond, 10*time.Second)
	s := &simulation{
		client: client, options: options, names: map[string]int{}, stopping: map[types.UID]stop{},
		ready: map[types.UID]time.Time{}, prepared: map[types.UID]map[types.UID]bool{},
		told: map[types.UID]string{}, reboots: map[string]reboot{}, ranges: map[string]string{},
		queue: workqueue.NewTypedRateLimitingQueue(limiter),
		nodeQ: workqueue.NewTypedRateLimitingQueue(limiter),
	}
	for number := 1; number <= options.nodes; number++ {
		s.names[fmt.Sprintf("%s%04d", options.prefix, number)] = number
	}
	return s
}

func (s *simulation) run(ctx context.Context) error {
	begin := time.Now()
	factory := informers.NewSharedInformerFactory(s.client, 0)
	podInformer, nodeInformer := factory.Core().V1().Pods(), factory.Core().V1().Nodes()
	claimInformer, sliceInformer := factory.Resource().V1().ResourceClaims(), factory.Resource().V1().ResourceSlices()
	s.pods, s.nodes = podInformer.Lister(), nodeInformer.Lister()
	s.claims, s.slices = claimInformer.Lister(), sliceInformer.Lister()
	_, err := podInformer.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    s.enqueuePod,
		UpdateFunc: func(_, now any) { s.enqueuePod(now) },
		DeleteFunc: s.forgetPod,
	})
	if err != nil {
		return err
	}
	_, err = nodeInformer.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(now any) {
			if node := now.(*corev1.Node); s.names[node.Name] != 0 && len(node.Status.Addresses) == 0 {
				s.nodeQ.Add(node.Name) // made by a test: the node of a kubelet that was gone joins
			}
		},
		UpdateFunc: func(before, now any) { s.enqueueNode(before.(*corev1.Node), now.(*corev1.Node)) },
		DeleteFunc: func(gone any) {
			key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(gone)
			if err != nil || s.names[key] == 0 {
				return
			}
			s.forgetRange(key)
			if node, ok := gone.(*corev1.Node); !ok || !has(node, faultHeartbeat) {
				s.nodeQ.Add(key) // a kubelet registers again, unless it is gone
			}
		},
	})
	if err != nil {
		return err
	}
	factory.Start(ctx.Done())
	for kind, synced := range factory.WaitForCacheSync(ctx.Done()) {
		if !synced {
			return fmt.Errorf("the informer of %v did not start", kind)
		}
	}
	var workers sync.WaitGroup
	for range s.options.workers {
		workers.Add(2)
		go func() { defer workers.Done(); s.work(ctx, s.nodeQ, s.syncNode) }()
		go func() { defer workers.Done(); s.work(ctx, s.queue, s.syncPod) }()
	}
	var beating sync.WaitGroup
	beating.Add(1)
	go func() { defer beating.Done(); s.heartbeats(ctx) }()
	if err := s.register(ctx); err != nil {
		return err
	}
	fmt.Printf("registered %d nodes in %.1f s\n", len(s.names), time.Since(begin).Seconds())
	beating.Wait()
	s.queue.ShutDown()
	s.nodeQ.ShutDown()
	workers.Wait()
	return nil
}

// work hands keys to sync until the queue is shut down; sync says when it wants to see a key again.
func (s *simulation) work(ctx context.Context, queue workqueue.TypedRateLimitingInterface[string],
	sync func(context.Context, string) (time.Duration, error)) {
	for {
		key, over := queue.Get()
		if over {
			return
		}
		again, err := sync(ctx, key)
		switch {
		case ctx.Err() != nil:
			// ending: nothing is worth a repetition
		case err != nil:
			if !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
				klog.ErrorS(err, "sync failed", "key", key)
			}
			queue.AddRateLimited(key)
		default:
			queue.Forget(key)
			if again > 0 {
				queue.AddAfter(key, again)
			}
		}
		queue.Done(key)
	}
}

// parallel calls do for every node, with as many at once as there are workers, and returns the first error.
func (s *simulation) parallel(ctx context.Context, do func(context.Context, string, int) error) error {
	type job struct {
		name   string
		number int
	}
	jobs := make(chan job)
	errs := make(chan error, s.options.workers)
	for range s.options.workers {
		go func() {
			var first error
			for one := range jobs {
				if err := do(ctx, one.name, one.number); err != nil && first == nil {
					first = err
				}
			}
			errs <- first
		}()
	}
	for name, number := range s.names {
		jobs <- job{name, number}
	}
	close(jobs)
	var first error
	for range s.options.workers {
		if err := <-errs; err != nil && first == nil {
			first = err
		}
	}
	return first
}

func (s *simulation) register(ctx context.Context) error {
	return s.parallel(ctx, func(ctx context.Context, name string, number int) error {
		if err := s.newLease(ctx, name); err != nil {
			return err
		}
		_, err := s.syncNode(ctx, name)
		if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
			s.nodeQ.AddRateLimited(name)
			return nil
		}
		return err
	})
}

// heartbeats renews every lease once per period, spread over it, until ctx ends.
func (s *simulation) heartbeats(ctx context.Context) {
	names := make([]string, 0, len(s.names))
	for name := range s.names {
		names = append(names, name)
	}
	slices.Sort(names)
	tick := time.NewTicker(s.options.heartbeat / time.Duration(len(names)))
	defer tick.Stop()
	for position := 0; ; position = (position + 1) % len(names) {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		name := names[position]
		node, err := s.nodes.Get(name)
		if err != nil || has(node, faultHeartbeat) || s.rebooting(name) {
			continue
		}
		go func() {
			if err := s.beat(ctx, name); err != nil && ctx.Err() == nil {
				klog.ErrorS(err, "no heartbeat", "node", name)
			}
		}()
	}
}

func (s *simulation) beat(ctx context.Context, name string) error {
	leases := s.client.CoordinationV1().Leases(corev1.NamespaceNodeLease)
	now := metav1.NowMicro()
	patch := fmt.Sprintf(`{"spec":{"renewTime":%q,"holderIdentity":%q}}`, now.UTC().Format(metav1.RFC3339Micro), name)
	_, err := leases.Patch(ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	if apierrors.IsNotFound(err) {
		return s.newLease(ctx, name)
	}
	return err
}

// newLease begins the heartbeat of a node.
func (s *simulation) newLease(ctx context.Context, name string) error {
	now := metav1.NowMicro()
	lease := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: corev1.NamespaceNodeLease},
		Spec: coordinationv1.LeaseSpec{
			HolderIdentity: &name, LeaseDurationSeconds: ptr.To(int32(leaseSeconds)), RenewTime: &now,
		},
	}
	_, err := s.client.CoordinationV1().Leases(corev1.NamespaceNodeLease).Create(ctx, lease, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// has tells whether a fault is in force on a node.
func has(node *corev1.Node, fault string) bool {
	return slices.Contains(strings.Split(node.Annotations[faultsAnnotation], ","), fault)
}

func (s *simulation) rebooting(name string) bool {
	s.lock.Lock()
	defer s.lock.Unlock()
	return time.Now().Before(s.reboots[name].until)
}

func (s *simulation) enqueueNode(before, now *corev1.Node) {
	if s.names[now.Name] == 0 {
		return
	}
	if before.Annotations[faultsAnnotation] != now.Annotations[faultsAnnotation] {
		s.nodeQ.Add(now.Name)
	} else if ready := readiness(now); ready != nil && ready.Status == corev1.ConditionUnknown {
		s.nodeQ.Add(now.Name) // somebody thinks that it is gone
	}
}

func readiness(node *corev1.Node) *corev1.NodeCondition {
	for position := range node.Status.Conditions {
		if node.Status.Conditions[position].Type == corev1.NodeReady {
			return &node.Status.Conditions[position]
		}
	}
	return nil
}

// syncNode makes a Node, its status and its slice what they should be.
func (s *simulation) syncNode(ctx context.Context, name string) (time.Duration, error) {
	number := s.names[name]
	node, err := s.nodes.Get(name)
	if apierrors.IsNotFound(err) {
		node = s.newNode(name, number)
		node.Status = *s.nodeStatus(node, number, true, string(uuid.NewUUID()))
		node, err = s.client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{})
	}
	if apierrors.IsAlreadyExists(err) {
		return resync, nil // the informer does not know it yet
	}
	if err != nil {
		return 0, err
	}
	if has(node, faultHeartbeat) {
		return 0, nil
	}
	boot, again := node.Status.NodeInfo.BootID, time.Duration(0)
	if boot == "" {
		boot = string(uuid.NewUUID())
	}
	ready, booted := !has(node, faultNotReady), false
	s.lock.Lock()
	if has(node, faultReboot) {
		plan, began := s.reboots[name]
		if !began {
			plan = reboot{time.Now().Add(rebootTime), string(uuid.NewUUID())}
			s.reboots[name] = plan
		}
		if left := time.Until(plan.until); left > 0 {
			ready, again = false, left+10*time.Millisecond
		} else {
			boot, booted = plan.boot, true
		}
	} else {
		delete(s.reboots, name)
	}
	s.lock.Unlock()
	status := s.nodeStatus(node, number, ready, boot)
	if !sameStatus(&node.Status, status) {
		copied := node.DeepCopy()
		copied.Status = *status
		if _, err := s.client.CoreV1().Nodes().UpdateStatus(ctx, copied, metav1.UpdateOptions{}); err != nil {
			return 0, err
		}
	}
	if s.options.rails > 0 {
		if err := s.syncSlice(ctx, node, number); err != nil {
			return 0, err
		}
	}
	if booted {
		// Only now: whoever waits for the end of the fault must find the new boot id.
		return 0, s.takeBack(ctx, node, faultReboot)
	}
	return again, nil
}

// takeBack removes a fault from the annotation of a node.
func (s *simulation) takeBack(ctx context.Context, node *corev1.Node, done string) error {
	rest := []string{}
	for _, fault := range strings.Split(node.Annotations[faultsAnnotation], ",") {
		if fault != done && fault != "" {
			rest = append(rest, fault)
		}
	}
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, faultsAnnotation, strings.Join(rest, ","))
	_, err := s.client.CoreV1().Nodes().Patch(ctx, node.Name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	return err
}

func (s *simulation) syncSlice(ctx context.Context, node *corev1.Node, number int) error {
	name := fmt.Sprintf("%s-%s", node.Name, strings.ReplaceAll(s.options.driver, ".", "-"))
	slices := s.client.ResourceV1().ResourceSlices()
	childRange := s.rangeOf(node.Name)
	present, err := s.slices.Get(name)
	gone := apierrors.IsNotFound(err)
	if err != nil && !gone {
		return err
	}
	switch {
	case has(node, faultSlices) && !gone:
		return slices.Delete(ctx, name, metav1.DeleteOptions{})
	case !has(node, faultSlices) && gone:
		_, err := slices.Create(ctx, s.newSlice(name, node, number, childRange), metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			return nil // the informer does not know it yet
		}
		return err
	case !gone && len(present.OwnerReferences) == 1 && present.OwnerReferences[0].UID != node.UID:
		// The slice of a node object that was deleted and made anew.
		if err := slices.Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
			return err
		}
		_, err := slices.Create(ctx, s.newSlice(name, node, number, childRange), metav1.CreateOptions{})
		return err
	case !gone && childRange != "" && childRange != publishedRange(present):
		copied := present.DeepCopy()
		copied.Spec.Devices = s.newSlice(name, node, number, childRange).Spec.Devices
		copied.Spec.Pool.Generation++
		_, err := slices.Update(ctx, copied, metav1.UpdateOptions{})
		return err
	}
	return nil
}

func (s *simulation) newSlice(name string, node *corev1.Node, number int, childRange string) *resourcev1.ResourceSlice {
	devices := make([]resourcev1.Device, 0, s.options.rails)
	for rail := range s.options.rails {
		devices = append(devices, newDevice(number, rail, childRange))
	}
	owner := metav1.OwnerReference{APIVersion: "v1", Kind: "Node", Name: node.Name, UID: node.UID, Controller: ptr.To(true)}
	return &resourcev1.ResourceSlice{
		ObjectMeta: metav1.ObjectMeta{Name: name, OwnerReferences: []metav1.OwnerReference{owner}},
		Spec: resourcev1.ResourceSliceSpec{
			Driver: s.options.driver, NodeName: ptr.To(node.Name),
			Pool:    resourcev1.ResourcePool{Name: node.Name, Generation: 1, ResourceSliceCount: 1},
			Devices: devices,
		},
	}
}
