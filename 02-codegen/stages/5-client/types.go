package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// +genclient
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// MyWeb is a website of one page.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name=Image,type=string,JSONPath=`.spec.image`
// +kubebuilder:printcolumn:name=Ready,type=integer,JSONPath=`.status.readyReplicas`
// +kubebuilder:printcolumn:name=Age,type=date,JSONPath=`.metadata.creationTimestamp`
type MyWeb struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the website that the user wants.
	//
	// +required
	Spec MyWebSpec `json:"spec"`
	// status is what the operator observed.
	//
	// +optional
	Status MyWebStatus `json:"status,omitempty"`
}

// MyWebSpec is the website that the user wants.
type MyWebSpec struct {
	// image is the container image that serves the page.
	//
	// +required
	Image string `json:"image"`
	// replicas is the number of pods that serve the page.
	//
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10
	Replicas *int32 `json:"replicas,omitempty"`
}

// MyWebStatus is what the operator observed.
type MyWebStatus struct {
	// readyReplicas is the number of pods that serve the page.
	//
	// +optional
	ReadyReplicas int32 `json:"readyReplicas,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// MyWebList is a list of MyWebs.
//
// +kubebuilder:object:root=true
type MyWebList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []MyWeb `json:"items"`
}
