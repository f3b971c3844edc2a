package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// MaxNodes is the maximum number of names in status.nodes. An object must stay small, because each change
// sends the whole object to every watcher.
const MaxNodes = 100

// ReasonContentNotFound is the reason of Degraded while the ConfigMap of spec.contentRef does not
// exist. The other reasons are those of internal/owned.
const ReasonContentNotFound = "ContentNotFound"

// NginxSpec is what the user wants.
type NginxSpec struct {
	// count is the number of pods. It has no default: the API server refuses an object without it. It is not
	// a pointer, so a client sends 0, which is a valid value, as 0.

	// count is the number of pods that run nginx. An autoscaler may write it, through the scale subresource.
	//
	// +required
	// +kubebuilder:validation:Minimum=0
	// +operator-sdk:csv:customresourcedefinitions:type=spec,xDescriptors="urn:alm:descriptor:com.tectonic.ui:podCount"
	Count int32 `json:"count"`
	// image is the container image: nginx, or a compatible server. Without it the operator chooses.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +operator-sdk:csv:customresourcedefinitions:type=spec
	Image string `json:"image,omitempty"`
	// contentRef names the content that nginx serves. Without it nginx serves the image's own page.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec
	ContentRef *ContentReference `json:"contentRef,omitempty"`
	// default={}: an absent service becomes an empty service, which then gets the default of its type.

	// service configures the Service of the pods.
	//
	// +optional
	// +kubebuilder:default={}
	// +operator-sdk:csv:customresourcedefinitions:type=spec
	Service NginxService `json:"service,omitzero"`
}

// ContentReference names a ConfigMap in the namespace of the Nginx.
type ContentReference struct {
	// name is the name of a ConfigMap, whose keys become files in /usr/share/nginx/html. When its data
	// change, new pods replace the old ones.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}

// NginxService configures the Service of the pods.
type NginxService struct {
	// type is the type of the Service: ClusterIP, NodePort or LoadBalancer.
	//
	// +optional
	// +kubebuilder:default=ClusterIP
	// +kubebuilder:validation:Enum=ClusterIP;NodePort;LoadBalancer
	Type string `json:"type,omitempty"`
}

// NginxStatus is what the operator observed.
type NginxStatus struct {
	// nodes are the names of this Nginx's own pods that are running, sorted; at most 100.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=100
	// +operator-sdk:csv:customresourcedefinitions:type=status
	Nodes []string `json:"nodes,omitempty"`
	// readyReplicas is the number of pods that are ready.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status
	ReadyReplicas int32 `json:"readyReplicas,omitempty"`
	// selector finds the pods of this Nginx, in the form that kubectl get pods -l takes. Autoscalers read it.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status
	Selector string `json:"selector,omitempty"`
	// conditions report the state: Available, Progressing and Degraded, each with a reason and a message.
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
}

// The name becomes a label value and the name of a Service, so it must be short, and begin with a letter.

// Nginx is a number of identical pods that run nginx, behind one Service.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=nginxes
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.count,statuspath=.status.readyReplicas,selectorpath=.status.selector
// +kubebuilder:printcolumn:name=Count,type=integer,JSONPath=`.spec.count`,description="The number of pods that are asked for."
// +kubebuilder:printcolumn:name=Ready,type=integer,JSONPath=`.status.readyReplicas`,description="The number of pods that are ready."
// +kubebuilder:printcolumn:name=Image,type=string,priority=1,JSONPath=`.spec.image`,description="The container image, empty when the operator chooses."
// +kubebuilder:printcolumn:name=Age,type=date,JSONPath=`.metadata.creationTimestamp`,description="The time since the Nginx was created."
// +kubebuilder:validation:XValidation:rule="oldSelf.hasValue() || self.metadata.name.matches('^[a-z]([-a-z0-9]{0,61}[a-z0-9])?$')",optionalOldSelf=true,fieldPath=`.metadata`,message="metadata.name must have at most 63 characters, only lower-case letters, digits and '-', start with a letter and end with a letter or a digit"
// +operator-sdk:csv:customresourcedefinitions:displayName="Nginx",resources={{Deployment,v1,""},{Service,v1,""}}
type Nginx struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what the user wants.
	//
	// +required
	Spec NginxSpec `json:"spec"`
	// status is what the operator observed. Only the operator writes it.
	//
	// +optional
	Status NginxStatus `json:"status,omitzero"`
}

// NginxList is a list of Nginxes.
//
// +kubebuilder:object:root=true
type NginxList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Nginx `json:"items"`
}

func init() {
	SchemeBuilder.Register(func(scheme *runtime.Scheme) error {
		scheme.AddKnownTypes(GroupVersion, &Nginx{}, &NginxList{})
		return nil
	})
}
