package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Reasons of a Memcached's conditions, beside those that both operators have (internal/owned).
const (
	// ReasonConfigNotFound: the ConfigMap of spec.configRef does not exist.
	ReasonConfigNotFound = "ConfigNotFound"
	// ReasonInvalidConfig: the ConfigMap of spec.configRef has a value that memcached would not accept.
	ReasonInvalidConfig = "InvalidConfig"
)

// DefaultPort is the container port of a Memcached without a port.
const DefaultPort = 11211

// MemcachedSpec is the cache that the user wants.
type MemcachedSpec struct {
	// A marker is a comment line that begins with +; controller-gen reads it. The API server sets the
	// default; Minimum, Maximum, MinLength and MaxLength are validation rules of the schema.

	// size is the number of pods, 1 to 5.
	//
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=5
	// +operator-sdk:csv:customresourcedefinitions:type=spec,xDescriptors="urn:alm:descriptor:com.tectonic.ui:podCount"
	Size int32 `json:"size,omitempty"`
	// containerPort is the port on which memcached listens, and the port of the Service.
	//
	// +optional
	// +kubebuilder:default=11211
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	// +operator-sdk:csv:customresourcedefinitions:type=spec
	ContainerPort int32 `json:"containerPort,omitempty"`
	// image is the container image. Without it the pods run the operator's default image, which
	// may change with the operator.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +operator-sdk:csv:customresourcedefinitions:type=spec
	Image string `json:"image,omitempty"`
	// configRef names a ConfigMap in the same namespace whose keys memoryMB, maxConnections and
	// verbose become flags of memcached. When they change, the pods are replaced.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec
	ConfigRef *ConfigReference `json:"configRef,omitempty"`
}

// ConfigReference names a ConfigMap.
type ConfigReference struct {
	// name is the name of the ConfigMap. The default is the name of the Memcached.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`
}

// MemcachedStatus is what the operator observed.
type MemcachedStatus struct {
	// listType=map and listMapKey: the type identifies an item, so server-side apply merges items,
	// and owners of different conditions do not overwrite each other.

	// conditions report the state of the cache: Available, Progressing and Degraded,
	// each with a reason and a message.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	// +operator-sdk:csv:customresourcedefinitions:type=status,xDescriptors="urn:alm:descriptor:io.kubernetes.conditions"
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// observedGeneration is the generation of the spec that this status describes.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// readyReplicas is the number of pods that are ready.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status
	ReadyReplicas int32 `json:"readyReplicas"`
	// selector finds the pods of this Memcached, in the form that kubectl get
	// pods -l takes. Autoscalers read it.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status
	Selector string `json:"selector,omitempty"`
}

// Markers of the kind: resource sets its name in the API, subresource opens /status and /scale,
// printcolumn adds a column to kubectl get, XValidation is a rule in CEL with its message.

// Memcached is a number of identical memcached servers behind one Service.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=memcacheds,singular=memcached
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.size,statuspath=.status.readyReplicas,selectorpath=.status.selector
// +kubebuilder:printcolumn:name=Size,type=integer,JSONPath=`.spec.size`,description="The desired number of pods."
// +kubebuilder:printcolumn:name=Ready,type=integer,JSONPath=`.status.readyReplicas`,description="The number of pods that are ready."
// +kubebuilder:printcolumn:name=Image,type=string,JSONPath=`.spec.image`,priority=1,description="The container image, empty for the operator's default."
// +kubebuilder:printcolumn:name=Age,type=date,JSONPath=`.metadata.creationTimestamp`,description="The time since the Memcached was created."
// +kubebuilder:validation:XValidation:rule="oldSelf.hasValue() || self.metadata.name.matches('^[a-z]([-a-z0-9]{0,61}[a-z0-9])?$')",optionalOldSelf=true,fieldPath=`.metadata`,message="metadata.name must have at most 63 characters, only lower-case letters, digits and '-', start with a letter and end with a letter or a digit: a Service and a label take this name"
// +operator-sdk:csv:customresourcedefinitions:displayName="Memcached",resources={{Deployment,v1,""},{Service,v1,""}}
type Memcached struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the cache that the user wants.
	//
	// +optional
	// +kubebuilder:default={}
	Spec MemcachedSpec `json:"spec,omitzero"`
	// status is what the operator observed. Only the operator writes it.
	//
	// +optional
	Status MemcachedStatus `json:"status,omitzero"`
}

// MemcachedList is a list of Memcacheds.
//
// +kubebuilder:object:root=true
type MemcachedList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Memcached `json:"items"`
}

func init() {
	SchemeBuilder.Register(func(scheme *runtime.Scheme) error {
		scheme.AddKnownTypes(GroupVersion, &Memcached{}, &MemcachedList{})
		return nil
	})
}
