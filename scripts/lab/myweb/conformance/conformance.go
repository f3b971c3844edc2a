// Package conformance holds the 14 behaviours that every MyWeb operator shows, as checks from outside.
package conformance

import (
	"slices"

	"example.com/operator-workshop/scripts/lab/myweb/suite"
)

// Behaviours are what the groups of the checks mean, in the order of the list.
var Behaviours = []string{
	"1 children appear, owned and selected by name and instance",
	"2 a changed page reaches the pods",
	"3 a changed image, port or replica count changes the child in place",
	"4 a removed nodePortNumber keeps the port",
	"5 what is deleted or edited comes back, what others add stays",
	"6 an object of somebody else is never changed",
	"7 a node port that is taken is reported, and recovered from",
	"8 a rollout that fails is reported, and the old pods too",
	"9 deleting leaves nothing, recreating works at once",
	"10 in steady state nothing is written",
	"11 events are recorded on transitions only",
	"12 bad specs are refused with the field's path",
	"13 a killed operator converges; refusals are no failure",
	"14 of two replicas one leads",
}

// Checks are all of them, in the order of the behaviours.
func Checks() []suite.Check {
	return slices.Concat(children(), updates(), driftCorrection(), conflicts(), deletion(), steadyState(), events(),
		refused(), crashes(), leaders())
}
