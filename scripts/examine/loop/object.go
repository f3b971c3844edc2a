package loop

import (
	"encoding/json"
	"fmt"
	"strings"
)

// An Object has the parts of an object that describe it, without its data.
type Object struct {
	Kind     string
	Metadata struct {
		Name, Namespace, UID, ResourceVersion, DeletionTimestamp string
		Generation                                               int64
		OwnerReferences                                          []struct {
			Kind, Name, UID string
			Controller      bool
		}
	}
	Status json.RawMessage
}

// Owners returns the UIDs of the object's owners.
func (o Object) Owners() (all []string) {
	for _, owner := range o.Metadata.OwnerReferences {
		all = append(all, owner.UID)
	}
	return all
}

// NoOwner is the fact that an object has no owner. Records about a custom resource lack it: a user makes that object.
const NoOwner = "no owner"

// IsCustom reports whether the resources of an API group are custom resources.
func IsCustom(group string) bool {
	return strings.Contains(group, ".") && !strings.HasSuffix(group, ".k8s.io")
}

// Facts describes the owners of an object, and the status that it reports, each in some words.
func (o Object) Facts() (all []string) {
	var status struct {
		ObservedGeneration int64
		Conditions         []struct{ Type, Status, Reason string }
	}
	_ = json.Unmarshal(o.Status, &status) // the status of an unknown kind may have other fields
	m := o.Metadata
	if m.Generation > 0 {
		text := fmt.Sprintf("generation %d", m.Generation)
		if status.ObservedGeneration > 0 {
			text += fmt.Sprintf(", observedGeneration %d", status.ObservedGeneration)
			if status.ObservedGeneration != m.Generation {
				text += " (behind)"
			}
		}
		all = append(all, text)
	}
	if m.DeletionTimestamp != "" {
		all = append(all, "is being deleted")
	}
	for _, owner := range m.OwnerReferences {
		text := "owner: " + owner.Kind + " " + owner.Name
		if owner.Controller {
			text += " (controller)"
		}
		all = append(all, text)
	}
	for _, c := range status.Conditions {
		text := c.Type + "=" + c.Status
		if c.Reason != "" {
			text += " (" + c.Reason + ")"
		}
		all = append(all, text)
	}
	return all
}

// Shown is what a record shows of its object.
type Shown struct {
	// Facts describe the owners of the object and the status that it reports.
	Facts []string `json:"facts,omitempty"`
	// Owners has the UIDs of the object's owners.
	Owners []string `json:"owners,omitempty"`
	// Fields are the paths of the fields that differ from the version before, as far as the proxy knows that version.
	Fields []string `json:"fields,omitempty"`
	// Values has the old and the new value of some of these fields, such as "1 → 3".
	Values map[string]string `json:"values,omitempty"`
}

// Differences returns the fields that differ, with their values.
func (s Shown) Differences() (all []string) {
	for _, field := range s.Fields {
		if values := s.Values[field]; values != "" {
			field += " (" + values + ")"
		}
		all = append(all, field)
	}
	return all
}

// mostShown is the number of texts of each kind that a record has. A client may have chosen them.
const mostShown = 16

func (s *Shown) cut() {
	for _, list := range []*[]string{&s.Facts, &s.Owners, &s.Fields} {
		some := (*list)[:min(len(*list), mostShown)]
		for i := range some {
			some[i] = Cut(some[i])
		}
		*list = some
	}
	all := s.Values // other records share the map
	s.Values = nil
	for _, field := range s.Fields {
		if text, ok := all[field]; ok {
			if s.Values == nil {
				s.Values = map[string]string{}
			}
			s.Values[field] = text
		}
	}
}
