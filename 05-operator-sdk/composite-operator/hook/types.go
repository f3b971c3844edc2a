package hook

import "time"

// MyWeb has the fields of the resource that the hook reads.
type MyWeb struct {
	Metadata Metadata `json:"metadata"`
	Spec     struct {
		Image           string `json:"image"`
		NodePortNumber  *int32 `json:"nodePortNumber"`
		PageContentHTML string `json:"pageContentHtml"`
		Replicas        *int32 `json:"replicas"`
	} `json:"spec"`
	Status Status `json:"status"`
}

func (web MyWeb) replicas() int32 {
	if web.Spec.Replicas == nil {
		return 1
	}
	return *web.Spec.Replicas
}

// Metadata is the metadata of any object.
type Metadata struct {
	Name        string            `json:"name"`
	UID         string            `json:"uid"`
	Generation  int64             `json:"generation"`
	Annotations map[string]string `json:"annotations"`
}

// An Object is an observed object. All its fields are empty when the object does not exist.
type Object struct {
	Metadata Metadata `json:"metadata"`
}

// has reports whether the object was made from the desired fields.
func (o Object) has(desired Desired) bool {
	annotations := desired["metadata"].(fields)["annotations"].(fields)
	return o.Metadata.UID != "" && o.Metadata.Annotations[digest] == annotations[digest]
}

// Deployment has the fields from which the status is computed.
type Deployment struct {
	Object
	Spec struct {
		Paused bool `json:"paused"`
	} `json:"spec"`
	Status struct {
		ObservedGeneration int64       `json:"observedGeneration"`
		Replicas           int32       `json:"replicas"`
		UpdatedReplicas    int32       `json:"updatedReplicas"`
		ReadyReplicas      int32       `json:"readyReplicas"`
		AvailableReplicas  int32       `json:"availableReplicas"`
		Conditions         []Condition `json:"conditions"`
	} `json:"status"`
}

// Service has the port that was chosen or allocated.
type Service struct {
	Object
	Spec struct {
		Ports []struct {
			Name     string `json:"name"`
			NodePort int32  `json:"nodePort"`
		} `json:"ports"`
	} `json:"spec"`
}

// Status is the status of a MyWeb. The composite controller adds observedGeneration.
type Status struct {
	Completed     bool        `json:"completed"`
	ReadyReplicas int32       `json:"readyReplicas"`
	NodePort      int32       `json:"nodePort,omitempty"`
	Selector      string      `json:"selector"`
	Conditions    []Condition `json:"conditions"`
}

// Condition is a condition of a MyWeb or of a Deployment.
type Condition struct {
	Type               string    `json:"type"`
	Status             string    `json:"status"`
	Reason             string    `json:"reason"`
	Message            string    `json:"message"`
	ObservedGeneration int64     `json:"observedGeneration,omitempty"`
	LastTransitionTime time.Time `json:"lastTransitionTime"`
}
