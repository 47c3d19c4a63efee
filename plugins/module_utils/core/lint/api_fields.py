# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The fields of the built-in kinds that the lint looks at. Private to rdma.k8s: it may change with any release.

Written by tests/tools/api_fields.py from the OpenAPI v3 of a real API server; do not edit.

A line of ``TYPES`` is a type and its fields, ``field=Type`` where the field holds values of another type; a line that
begins with a space goes on.
"""

from __future__ import annotations

VERSION = "v1.37.2"
"""The release of Kubernetes."""

KINDS = {
    ("v1", "Pod"): "core.Pod",
    ("v1", "PodTemplate"): "core.PodTemplate",
    ("v1", "ReplicationController"): "core.ReplicationController",
    ("apps/v1", "DaemonSet"): "apps.DaemonSet",
    ("apps/v1", "Deployment"): "apps.Deployment",
    ("apps/v1", "ReplicaSet"): "apps.ReplicaSet",
    ("apps/v1", "StatefulSet"): "apps.StatefulSet",
    ("batch/v1", "CronJob"): "batch.CronJob",
    ("batch/v1", "Job"): "batch.Job",
    ("resource.k8s.io/v1", "DeviceClass"): "resource.DeviceClass",
    ("resource.k8s.io/v1", "ResourceClaim"): "resource.ResourceClaim",
    ("resource.k8s.io/v1", "ResourceClaimTemplate"): "resource.ResourceClaimTemplate",
}
"""API version and kind to the type."""

TYPES = """\
apps.DaemonSet apiVersion kind metadata=meta.ObjectMeta spec=apps.DaemonSetSpec status
apps.DaemonSetSpec minReadySeconds revisionHistoryLimit selector=meta.LabelSelector
 template=core.PodTemplateSpec updateStrategy=apps.DaemonSetUpdateStrategy
apps.DaemonSetUpdateStrategy rollingUpdate=apps.RollingUpdateDaemonSet type
apps.Deployment apiVersion kind metadata=meta.ObjectMeta spec=apps.DeploymentSpec status
apps.DeploymentSpec minReadySeconds paused progressDeadlineSeconds replicas revisionHistoryLimit
 selector=meta.LabelSelector strategy=apps.DeploymentStrategy template=core.PodTemplateSpec
apps.DeploymentStrategy rollingUpdate=apps.RollingUpdateDeployment type
apps.ReplicaSet apiVersion kind metadata=meta.ObjectMeta spec=apps.ReplicaSetSpec status
apps.ReplicaSetSpec minReadySeconds replicas selector=meta.LabelSelector template=core.PodTemplateSpec
apps.RollingUpdateDaemonSet maxSurge maxUnavailable
apps.RollingUpdateDeployment maxSurge maxUnavailable
apps.RollingUpdateStatefulSetStrategy maxUnavailable partition
apps.StatefulSet apiVersion kind metadata=meta.ObjectMeta spec=apps.StatefulSetSpec status
apps.StatefulSetOrdinals start
apps.StatefulSetPersistentVolumeClaimRetentionPolicy whenDeleted whenScaled
apps.StatefulSetSpec minReadySeconds ordinals=apps.StatefulSetOrdinals
 persistentVolumeClaimRetentionPolicy=apps.StatefulSetPersistentVolumeClaimRetentionPolicy podManagementPolicy
 replicas revisionHistoryLimit selector=meta.LabelSelector serviceName template=core.PodTemplateSpec
 updateStrategy=apps.StatefulSetUpdateStrategy volumeClaimTemplates=core.PersistentVolumeClaim
apps.StatefulSetUpdateStrategy rollingUpdate=apps.RollingUpdateStatefulSetStrategy type
batch.CronJob apiVersion kind metadata=meta.ObjectMeta spec=batch.CronJobSpec status
batch.CronJobSpec concurrencyPolicy failedJobsHistoryLimit jobTemplate=batch.JobTemplateSpec schedule
 startingDeadlineSeconds successfulJobsHistoryLimit suspend timeZone
batch.Job apiVersion kind metadata=meta.ObjectMeta spec=batch.JobSpec status
batch.JobSchedulingConfiguration disruptionMode=scheduling.WorkloadPodGroupDisruptionMode
 resourceClaims=scheduling.WorkloadPodGroupResourceClaim
 schedulingConstraints=scheduling.WorkloadPodGroupSchedulingConstraints
 schedulingPolicy=scheduling.WorkloadPodGroupSchedulingPolicy
batch.JobSpec activeDeadlineSeconds backoffLimit backoffLimitPerIndex completionMode completions managedBy
 manualSelector maxFailedIndexes parallelism podFailurePolicy=batch.PodFailurePolicy podReplacementPolicy
 scheduling=batch.JobSchedulingConfiguration selector=meta.LabelSelector successPolicy=batch.SuccessPolicy
 suspend template=core.PodTemplateSpec ttlSecondsAfterFinished
batch.JobTemplateSpec metadata=meta.ObjectMeta spec=batch.JobSpec
batch.PodFailurePolicy rules=batch.PodFailurePolicyRule
batch.PodFailurePolicyOnExitCodesRequirement containerName operator values
batch.PodFailurePolicyOnPodConditionsPattern status type
batch.PodFailurePolicyRule action onExitCodes=batch.PodFailurePolicyOnExitCodesRequirement
 onPodConditions=batch.PodFailurePolicyOnPodConditionsPattern
batch.SuccessPolicy rules=batch.SuccessPolicyRule
batch.SuccessPolicyRule succeededCount succeededIndexes
core.AWSElasticBlockStoreVolumeSource fsType partition readOnly volumeID
core.Affinity nodeAffinity=core.NodeAffinity podAffinity=core.PodAffinity podAntiAffinity=core.PodAntiAffinity
core.AppArmorProfile localhostProfile type
core.AzureDiskVolumeSource cachingMode diskName diskURI fsType kind readOnly
core.AzureFileVolumeSource readOnly secretName shareName
core.CSIVolumeSource driver fsType nodePublishSecretRef=core.LocalObjectReference readOnly volumeAttributes
core.Capabilities add drop
core.CephFSVolumeSource monitors path readOnly secretFile secretRef=core.LocalObjectReference user
core.CinderVolumeSource fsType readOnly secretRef=core.LocalObjectReference volumeID
core.ClusterTrustBundleProjection labelSelector=meta.LabelSelector name optional path signerName user
core.ConfigMapEnvSource name optional
core.ConfigMapKeySelector key name optional
core.ConfigMapProjection items=core.KeyToPath name optional
core.ConfigMapVolumeSource defaultMode defaultUser items=core.KeyToPath name optional
core.Container args command env=core.EnvVar envFrom=core.EnvFromSource image imagePullPolicy
 lifecycle=core.Lifecycle livenessProbe=core.Probe name ports=core.ContainerPort readinessProbe=core.Probe
 resizePolicy=core.ContainerResizePolicy resources=core.ResourceRequirements restartPolicy
 restartPolicyRules=core.ContainerRestartRule securityContext=core.SecurityContext startupProbe=core.Probe
 stdin stdinOnce terminationMessagePath terminationMessagePolicy tty volumeDevices=core.VolumeDevice
 volumeMounts=core.VolumeMount workingDir
core.ContainerPort containerPort hostIP hostPort name protocol
core.ContainerResizePolicy resourceName restartPolicy
core.ContainerRestartRule action exitCodes=core.ContainerRestartRuleOnExitCodes
core.ContainerRestartRuleOnExitCodes operator values
core.DownwardAPIProjection items=core.DownwardAPIVolumeFile
core.DownwardAPIVolumeFile fieldRef=core.ObjectFieldSelector mode path
 resourceFieldRef=core.ResourceFieldSelector user
core.DownwardAPIVolumeSource defaultMode defaultUser items=core.DownwardAPIVolumeFile
core.EmptyDirVolumeSource medium mode sizeLimit
core.EnvFromSource configMapRef=core.ConfigMapEnvSource prefix secretRef=core.SecretEnvSource
core.EnvVar name value valueFrom=core.EnvVarSource
core.EnvVarSource configMapKeyRef=core.ConfigMapKeySelector fieldRef=core.ObjectFieldSelector
 fileKeyRef=core.FileKeySelector resourceFieldRef=core.ResourceFieldSelector
 secretKeyRef=core.SecretKeySelector
core.EphemeralContainer args command env=core.EnvVar envFrom=core.EnvFromSource image imagePullPolicy
 lifecycle=core.Lifecycle livenessProbe=core.Probe name ports=core.ContainerPort readinessProbe=core.Probe
 resizePolicy=core.ContainerResizePolicy resources=core.ResourceRequirements restartPolicy
 restartPolicyRules=core.ContainerRestartRule securityContext=core.SecurityContext startupProbe=core.Probe
 stdin stdinOnce targetContainerName terminationMessagePath terminationMessagePolicy tty
 volumeDevices=core.VolumeDevice volumeMounts=core.VolumeMount workingDir
core.EphemeralVolumeSource volumeClaimTemplate=core.PersistentVolumeClaimTemplate
core.EvictionResponder name priority
core.ExecAction command
core.FCVolumeSource fsType lun readOnly targetWWNs wwids
core.FileKeySelector key optional path volumeName
core.FlexVolumeSource driver fsType options readOnly secretRef=core.LocalObjectReference
core.FlockerVolumeSource datasetName datasetUUID
core.GCEPersistentDiskVolumeSource fsType partition pdName readOnly
core.GRPCAction mode port service
core.GitRepoVolumeSource directory repository revision
core.GlusterfsVolumeSource endpoints path readOnly
core.HTTPGetAction host httpHeaders=core.HTTPHeader path port protocol scheme
core.HTTPHeader name value
core.HostAlias hostnames ip
core.HostPathVolumeSource path type
core.ISCSIVolumeSource chapAuthDiscovery chapAuthSession fsType initiatorName iqn iscsiInterface lun portals
 readOnly secretRef=core.LocalObjectReference targetPortal
core.ImageVolumeSource pullPolicy reference
core.KeyToPath key mode path user
core.Lifecycle postStart=core.LifecycleHandler preStop=core.LifecycleHandler stopSignal
core.LifecycleHandler exec=core.ExecAction httpGet=core.HTTPGetAction sleep=core.SleepAction
 tcpSocket=core.TCPSocketAction
core.LocalObjectReference name
core.NFSVolumeSource path readOnly server
core.NodeAffinity preferredDuringSchedulingIgnoredDuringExecution=core.PreferredSchedulingTerm
 requiredDuringSchedulingIgnoredDuringExecution=core.NodeSelector
core.NodeSelector nodeSelectorTerms=core.NodeSelectorTerm
core.NodeSelectorRequirement key operator values
core.NodeSelectorTerm matchExpressions=core.NodeSelectorRequirement matchFields=core.NodeSelectorRequirement
core.ObjectFieldSelector apiVersion fieldPath
core.PersistentVolumeClaim apiVersion kind metadata=meta.ObjectMeta spec=core.PersistentVolumeClaimSpec status
core.PersistentVolumeClaimSpec accessModes dataSource=core.TypedLocalObjectReference
 dataSourceRef=core.TypedObjectReference resources=core.VolumeResourceRequirements selector=meta.LabelSelector
 storageClassName volumeAttributesClassName volumeMode volumeName
core.PersistentVolumeClaimTemplate metadata=meta.ObjectMeta spec=core.PersistentVolumeClaimSpec
core.PersistentVolumeClaimVolumeSource claimName readOnly
core.PhotonPersistentDiskVolumeSource fsType pdID
core.Pod apiVersion kind metadata=meta.ObjectMeta spec=core.PodSpec status
core.PodAffinity preferredDuringSchedulingIgnoredDuringExecution=core.WeightedPodAffinityTerm
 requiredDuringSchedulingIgnoredDuringExecution=core.PodAffinityTerm
core.PodAffinityTerm labelSelector=meta.LabelSelector matchLabelKeys mismatchLabelKeys
 namespaceSelector=meta.LabelSelector namespaces topologyKey
core.PodAntiAffinity preferredDuringSchedulingIgnoredDuringExecution=core.WeightedPodAffinityTerm
 requiredDuringSchedulingIgnoredDuringExecution=core.PodAffinityTerm
core.PodCertificateProjection certificateChainPath credentialBundlePath keyPath keyType maxExpirationSeconds
 signerName user userAnnotations
core.PodDNSConfig nameservers options=core.PodDNSConfigOption searches
core.PodDNSConfigOption name value
core.PodOS name
core.PodReadinessGate conditionType
core.PodResourceClaim name resourceClaimName resourceClaimTemplateName
core.PodSchedulingGate name
core.PodSchedulingGroup podGroupName
core.PodSecurityContext appArmorProfile=core.AppArmorProfile fsGroup fsGroupChangePolicy runAsGroup
 runAsNonRoot runAsUser seLinuxChangePolicy seLinuxOptions=core.SELinuxOptions
 seccompProfile=core.SeccompProfile supplementalGroups supplementalGroupsPolicy sysctls=core.Sysctl
 windowsOptions=core.WindowsSecurityContextOptions
core.PodSpec activeDeadlineSeconds affinity=core.Affinity automountServiceAccountToken
 containers=core.Container dnsConfig=core.PodDNSConfig dnsPolicy enableServiceLinks
 ephemeralContainers=core.EphemeralContainer evictionResponders=core.EvictionResponder
 hostAliases=core.HostAlias hostIPC hostNetwork hostPID hostUsers hostname hostnameOverride
 imagePullSecrets=core.LocalObjectReference initContainers=core.Container nodeName nodeSelector os=core.PodOS
 overhead preemptionPolicy priority priorityClassName readinessGates=core.PodReadinessGate
 resourceClaims=core.PodResourceClaim resources=core.ResourceRequirements restartPolicy runtimeClassName
 schedulerName schedulingGates=core.PodSchedulingGate schedulingGroup=core.PodSchedulingGroup
 securityContext=core.PodSecurityContext serviceAccount serviceAccountName setHostnameAsFQDN
 shareProcessNamespace subdomain terminationGracePeriodSeconds tolerations=core.Toleration
 topologySpreadConstraints=core.TopologySpreadConstraint volumes=core.Volume
core.PodTemplate apiVersion kind metadata=meta.ObjectMeta template=core.PodTemplateSpec
core.PodTemplateSpec metadata=meta.ObjectMeta spec=core.PodSpec
core.PortworxVolumeSource fsType readOnly volumeID
core.PreferredSchedulingTerm preference=core.NodeSelectorTerm weight
core.Probe exec=core.ExecAction failureThreshold grpc=core.GRPCAction httpGet=core.HTTPGetAction
 initialDelaySeconds periodSeconds successThreshold tcpSocket=core.TCPSocketAction
 terminationGracePeriodSeconds timeoutSeconds
core.ProjectedVolumeSource defaultMode defaultUser sources=core.VolumeProjection
core.QuobyteVolumeSource group readOnly registry tenant user volume
core.RBDVolumeSource fsType image keyring monitors pool readOnly secretRef=core.LocalObjectReference user
core.ReplicationController apiVersion kind metadata=meta.ObjectMeta spec=core.ReplicationControllerSpec status
core.ReplicationControllerSpec minReadySeconds replicas selector template=core.PodTemplateSpec
core.ResourceClaim name request
core.ResourceFieldSelector containerName divisor resource
core.ResourceRequirements claims=core.ResourceClaim limits requests
core.SELinuxOptions level role type user
core.ScaleIOVolumeSource fsType gateway protectionDomain readOnly secretRef=core.LocalObjectReference
 sslEnabled storageMode storagePool system volumeName
core.SeccompProfile localhostProfile type
core.SecretEnvSource name optional
core.SecretKeySelector key name optional
core.SecretProjection items=core.KeyToPath name optional
core.SecretVolumeSource defaultMode defaultUser items=core.KeyToPath optional secretName
core.SecurityContext allowPrivilegeEscalation appArmorProfile=core.AppArmorProfile
 capabilities=core.Capabilities privileged procMount readOnlyRootFilesystem runAsGroup runAsNonRoot runAsUser
 seLinuxOptions=core.SELinuxOptions seccompProfile=core.SeccompProfile
 windowsOptions=core.WindowsSecurityContextOptions
core.ServiceAccountTokenProjection audience expirationSeconds path user
core.SleepAction seconds
core.StorageOSVolumeSource fsType readOnly secretRef=core.LocalObjectReference volumeName volumeNamespace
core.Sysctl name value
core.TCPSocketAction host port
core.Toleration effect key operator tolerationSeconds value
core.TopologySpreadConstraint labelSelector=meta.LabelSelector matchLabelKeys maxSkew minDomains
 nodeAffinityPolicy nodeTaintsPolicy topologyKey whenUnsatisfiable
core.TypedLocalObjectReference apiGroup kind name
core.TypedObjectReference apiGroup kind name namespace
core.Volume awsElasticBlockStore=core.AWSElasticBlockStoreVolumeSource azureDisk=core.AzureDiskVolumeSource
 azureFile=core.AzureFileVolumeSource cephfs=core.CephFSVolumeSource cinder=core.CinderVolumeSource
 configMap=core.ConfigMapVolumeSource csi=core.CSIVolumeSource downwardAPI=core.DownwardAPIVolumeSource
 emptyDir=core.EmptyDirVolumeSource ephemeral=core.EphemeralVolumeSource fc=core.FCVolumeSource
 flexVolume=core.FlexVolumeSource flocker=core.FlockerVolumeSource
 gcePersistentDisk=core.GCEPersistentDiskVolumeSource gitRepo=core.GitRepoVolumeSource
 glusterfs=core.GlusterfsVolumeSource hostPath=core.HostPathVolumeSource image=core.ImageVolumeSource
 iscsi=core.ISCSIVolumeSource name nfs=core.NFSVolumeSource
 persistentVolumeClaim=core.PersistentVolumeClaimVolumeSource
 photonPersistentDisk=core.PhotonPersistentDiskVolumeSource portworxVolume=core.PortworxVolumeSource
 projected=core.ProjectedVolumeSource quobyte=core.QuobyteVolumeSource rbd=core.RBDVolumeSource
 scaleIO=core.ScaleIOVolumeSource secret=core.SecretVolumeSource storageos=core.StorageOSVolumeSource
 vsphereVolume=core.VsphereVirtualDiskVolumeSource
core.VolumeDevice devicePath name
core.VolumeMount bindMountOptions mountPath mountPropagation name readOnly recursiveReadOnly subPath
 subPathExpr
core.VolumeProjection clusterTrustBundle=core.ClusterTrustBundleProjection configMap=core.ConfigMapProjection
 downwardAPI=core.DownwardAPIProjection podCertificate=core.PodCertificateProjection
 secret=core.SecretProjection serviceAccountToken=core.ServiceAccountTokenProjection
core.VolumeResourceRequirements limits requests
core.VsphereVirtualDiskVolumeSource fsType storagePolicyID storagePolicyName volumePath
core.WeightedPodAffinityTerm podAffinityTerm=core.PodAffinityTerm weight
core.WindowsSecurityContextOptions gmsaCredentialSpec gmsaCredentialSpecName hostProcess runAsUserName
meta.LabelSelector matchExpressions=meta.LabelSelectorRequirement matchLabels
meta.LabelSelectorRequirement key operator values
meta.ObjectMeta annotations creationTimestamp deletionGracePeriodSeconds deletionTimestamp finalizers
 generateName generation labels managedFields name namespace ownerReferences=meta.OwnerReference
 resourceVersion selfLink uid
meta.OwnerReference apiVersion blockOwnerDeletion controller kind name uid
resource.CELDeviceSelector expression
resource.CapacityRequirements requests
resource.DeviceClaim config=resource.DeviceClaimConfiguration constraints=resource.DeviceConstraint
 requests=resource.DeviceRequest
resource.DeviceClaimConfiguration opaque=resource.OpaqueDeviceConfiguration requests
resource.DeviceClass apiVersion kind metadata=meta.ObjectMeta spec=resource.DeviceClassSpec
resource.DeviceClassConfiguration opaque=resource.OpaqueDeviceConfiguration
resource.DeviceClassSpec config=resource.DeviceClassConfiguration extendedResourceName
 selectors=resource.DeviceSelector
resource.DeviceConstraint distinctAttribute matchAttribute requests
resource.DeviceDerivedAttribute expression name
resource.DeviceRequest exactly=resource.ExactDeviceRequest firstAvailable=resource.DeviceSubRequest name
resource.DeviceSelector cel=resource.CELDeviceSelector
resource.DeviceSubRequest allocationMode capacity=resource.CapacityRequirements count
 derivedAttributes=resource.DeviceDerivedAttribute deviceClassName name selectors=resource.DeviceSelector
 tolerations=resource.DeviceToleration
resource.DeviceToleration effect key operator tolerationSeconds value
resource.ExactDeviceRequest adminAccess allocationMode capacity=resource.CapacityRequirements count
 derivedAttributes=resource.DeviceDerivedAttribute deviceClassName selectors=resource.DeviceSelector
 tolerations=resource.DeviceToleration
resource.OpaqueDeviceConfiguration driver parameters
resource.ResourceClaim apiVersion kind metadata=meta.ObjectMeta spec=resource.ResourceClaimSpec status
resource.ResourceClaimSpec devices=resource.DeviceClaim
resource.ResourceClaimTemplate apiVersion kind metadata=meta.ObjectMeta
 spec=resource.ResourceClaimTemplateSpec
resource.ResourceClaimTemplateSpec metadata=meta.ObjectMeta spec=resource.ResourceClaimSpec
scheduling.TopologyConstraint key
scheduling.WorkloadPodGroupDisruptionMode all single
scheduling.WorkloadPodGroupGangSchedulingPolicy minCount
scheduling.WorkloadPodGroupResourceClaim name resourceClaimName resourceClaimTemplateName
scheduling.WorkloadPodGroupSchedulingConstraints topology=scheduling.TopologyConstraint
scheduling.WorkloadPodGroupSchedulingPolicy basic gang=scheduling.WorkloadPodGroupGangSchedulingPolicy
"""
