package v2

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// The conditions are those of v1: clients of both versions wait for the same.
//
// storageversion: this is the version in etcd. Exactly one version of a CRD has it.

// MyWeb is a website of one page, served by a number of equal pods on one port of every node.
//
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:resource:path=mywebs,singular=myweb,shortName=web,categories=all
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.readyReplicas,selectorpath=.status.selector
// +kubebuilder:printcolumn:name=Image,type=string,JSONPath=`.spec.image`,description="The container image that serves the page."
// +kubebuilder:printcolumn:name=NodePort,type=integer,JSONPath=`.status.nodePort`,description="The port on every node where the page is served."
// +kubebuilder:printcolumn:name=Ready,type=integer,JSONPath=`.status.readyReplicas`,description="The number of pods that serve the page."
// +kubebuilder:printcolumn:name=Description,type=string,JSONPath=`.spec.description`,description="What the page is for."
// +kubebuilder:printcolumn:name=Age,type=date,JSONPath=`.metadata.creationTimestamp`,description="The time since the MyWeb was created."
// +kubebuilder:validation:XValidation:rule="oldSelf.hasValue() || self.metadata.name.matches('^[a-z]([-a-z0-9]{0,61}[a-z0-9])?$')",optionalOldSelf=true,fieldPath=`.metadata`,message="metadata.name must have at most 63 characters, only lower-case letters, digits and '-', start with a letter and end with a letter or a digit"
type MyWeb struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the website that the user wants.
	//
	// +required
	Spec MyWebSpec `json:"spec"`
	// status is what the operator observed. Only the operator writes it.
	//
	// +optional
	Status MyWebStatus `json:"status,omitempty"`
}

// MyWebSpec is the website that the user wants.
type MyWebSpec struct {
	// image is the container image that serves the page: a web server that
	// listens on port 80 and reads /usr/share/nginx/html, such as nginx.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="self == '' || self.matches('^(([a-zA-Z0-9]([-a-zA-Z0-9]*[a-zA-Z0-9])?([.][a-zA-Z0-9]([-a-zA-Z0-9]*[a-zA-Z0-9])?)*|[[][a-fA-F0-9:]+[]])(:[0-9]+)?/)?[a-z0-9]+((__?|[.]|-+)[a-z0-9]+)*(/[a-z0-9]+((__?|[.]|-+)[a-z0-9]+)*)*(:[a-zA-Z0-9_][-a-zA-Z0-9_.]{0,127})?(@(sha256:[a-f0-9]{64}|sha384:[a-f0-9]{96}|sha512:[a-f0-9]{128}))?$')",message="must be an image reference [registry[:port]/]path[:tag][@digest] without spaces and with a lower-case path, for example nginx:1.29 or registry:5000/team/web@sha256:<64 hex digits>"
	Image string `json:"image"`
	// nodePort is the port on every node where the page is served.
	// Without it the cluster allocates a port, which is then kept.
	//
	// +optional
	// +kubebuilder:validation:Minimum=30000
	// +kubebuilder:validation:Maximum=32767
	NodePort *int32 `json:"nodePort,omitempty"`
	// page is the served web page.
	//
	// +optional
	Page *Page `json:"page,omitempty"`
	// description is what the page is for, a sentence for people. The
	// operator does not use it.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=200
	Description string `json:"description,omitempty"`
	// replicas is the number of pods that serve the page, at most 10.
	//
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10
	Replicas *int32 `json:"replicas,omitempty"`
}

// Page is a page.
type Page struct {
	// required, so "no page" has one form only: v1 could not tell an empty object from none.

	// html is the page, at most 40000 characters, served as it is written
	// here: nothing is escaped, trimmed or filled in.
	//
	// +required
	// +kubebuilder:validation:MaxLength=40000
	HTML string `json:"html"`
}

// MyWebStatus is what the operator observed. It is that of v1, field by field.
type MyWebStatus struct {
	// completed is true exactly while the current generation of the spec is fully served.
	//
	// +optional
	Completed bool `json:"completed,omitempty"`
	// conditions report the state of the website: Available, Progressing and
	// Degraded, each with a reason and a message.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// nodePort is the port on every node where the page is served, chosen or allocated.
	//
	// +optional
	NodePort int32 `json:"nodePort,omitempty"`
	// observedGeneration is the generation of the spec that this status speaks of.
	//
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// readyReplicas is the number of pods that serve the page.
	//
	// +optional
	ReadyReplicas int32 `json:"readyReplicas,omitempty"`
	// selector finds the pods of this MyWeb, in the form that kubectl get
	// pods -l takes. Autoscalers read it.
	//
	// +optional
	Selector string `json:"selector,omitempty"`
}

// MyWebList is a list of MyWebs.
//
// +kubebuilder:object:root=true
type MyWebList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []MyWeb `json:"items"`
}
