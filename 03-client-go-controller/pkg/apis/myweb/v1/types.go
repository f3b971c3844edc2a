package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// A marker is a comment line that begins with +, an instruction for a generator. Generators read markers in
// the doc comment of a type or field and in the comment right above the doc comment. Only doc comments
// become descriptions, in the CRD and in the apply configurations. So comments for readers of this file,
// like these lines, are separate from doc comments.

// ReasonNodePortUnavailable is the reason of Degraded while another Service has the node port. Package owned of
// chapters 03 and 04 has the reasons that owners of all kinds share, and the types of the conditions.
const ReasonNodePortUnavailable = "NodePortUnavailable"

// Markers of code-generator:
//   - genclient asks for a client, a lister and an informer. The field Status gives the client
//     UpdateStatus and ApplyStatus as well.
//   - genclient:method adds a method: here the two methods of the scale subresource, whose type is the
//     Scale of autoscaling/v1.
//   - k8s:deepcopy-gen:interfaces adds DeepCopyObject and so makes the type a runtime.Object, which
//     schemes, clients and caches handle.
//
// Markers of controller-gen, in the doc comment:
//   - object:root has the same meaning as k8s:deepcopy-gen:interfaces: controller-gen makes deep copies, too.
//   - resource gives the kind's names in the API, its short name and its category.
//   - subresource:status and subresource:scale add these endpoints; scale reads its numbers at the
//     given paths.
//   - printcolumn is a column of kubectl get.
//   - validation:XValidation is a rule in CEL with its error message; the error names fieldPath.
//
// +genclient
// +genclient:method=GetScale,verb=get,subresource=scale,result=k8s.io/api/autoscaling/v1.Scale
// +genclient:method=UpdateScale,verb=update,subresource=scale,input=k8s.io/api/autoscaling/v1.Scale,result=k8s.io/api/autoscaling/v1.Scale
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// MyWeb is a website of one page, served by a number of equal pods on one port of every node.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=mywebs,singular=myweb,shortName=web,categories=all
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.readyReplicas,selectorpath=.status.selector
// +kubebuilder:printcolumn:name=Image,type=string,JSONPath=`.spec.image`,description="The container image that serves the page."
// +kubebuilder:printcolumn:name=NodePort,type=integer,JSONPath=`.status.nodePort`,description="The port on every node where the page is served."
// +kubebuilder:printcolumn:name=Ready,type=integer,JSONPath=`.status.readyReplicas`,description="The number of pods that serve the page."
// +kubebuilder:printcolumn:name=Age,type=date,JSONPath=`.metadata.creationTimestamp`,description="The time since the MyWeb was created."
// +kubebuilder:validation:XValidation:rule="oldSelf.hasValue() || self.metadata.name.matches('^[a-z]([-a-z0-9]{0,61}[a-z0-9])?$')",optionalOldSelf=true,fieldPath=`.metadata`,message="metadata.name must have at most 63 characters, only lower-case letters, digits and '-', start with a letter and end with a letter or a digit"
type MyWeb struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// required and optional: whether the schema lists the field as required.

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
	// validation:MinLength, MaxLength, Minimum and Maximum are limits in the schema; XValidation is
	// a rule in CEL, here for this field alone.

	// image is the container image that serves the page: a web server that
	// listens on port 80 and reads /usr/share/nginx/html, such as nginx.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="self == '' || self.matches('^(([a-zA-Z0-9]([-a-zA-Z0-9]*[a-zA-Z0-9])?([.][a-zA-Z0-9]([-a-zA-Z0-9]*[a-zA-Z0-9])?)*|[[][a-fA-F0-9:]+[]])(:[0-9]+)?/)?[a-z0-9]+((__?|[.]|-+)[a-z0-9]+)*(/[a-z0-9]+((__?|[.]|-+)[a-z0-9]+)*)*(:[a-zA-Z0-9_][-a-zA-Z0-9_.]{0,127})?(@(sha256:[a-f0-9]{64}|sha384:[a-f0-9]{96}|sha512:[a-f0-9]{128}))?$')",message="must be an image reference [registry[:port]/]path[:tag][@digest] without spaces and with a lower-case path, for example nginx:1.29 or registry:5000/team/web@sha256:<64 hex digits>"
	Image string `json:"image"`
	// nodePortNumber is the port on every node where the page is served.
	// Without it the cluster allocates a port, which is then kept.
	//
	// +optional
	// +kubebuilder:validation:Minimum=30000
	// +kubebuilder:validation:Maximum=32767
	NodePortNumber *int32 `json:"nodePortNumber,omitempty"`
	// pageContentHtml is the page, at most 40000 characters, served as it is
	// written here: nothing is escaped, trimmed or filled in.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=40000
	PageContentHTML *string `json:"pageContentHtml,omitempty"`
	// default: the API server fills it in. A pointer distinguishes 0, which is a choice, from a field that is not set.

	// replicas is the number of pods that serve the page, at most 10.
	//
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10
	Replicas *int32 `json:"replicas,omitempty"`
}

// MyWebStatus is what the operator observed.
type MyWebStatus struct {
	// completed is true exactly while the current generation of the spec is fully served.
	//
	// +optional
	Completed bool `json:"completed,omitempty"`
	// listType=map and listMapKey: the key of an item is its type. So server-side apply merges items,
	// and owners of different conditions do not overwrite each other.

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

// A kind needs a list type: clients decode the answer to a LIST into it. It has no genclient, because no client
// reads or writes a list by name.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// MyWebList is a list of MyWebs.
//
// +kubebuilder:object:root=true
type MyWebList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []MyWeb `json:"items"`
}
