package controller

import (
	"k8s.io/client-go/tools/cache"

	"example.com/operator-workshop/03-client-go-controller/internal/myweb"
)

// Demanded by the checks of behaviour/06 and behaviour/07: a MyWeb recovers by itself, at once, when the object
// that it was in conflict with is gone. Its owner reference does not lead to the MyWeb.

// mapToMyWebs returns the MyWebs that an object may be in conflict with: the one that has its name, and those
// that ask for a node port that it has.
func (i *Informers) mapToMyWebs(obj myweb.Object) (webs []cache.ObjectName) {
	if web, err := i.MyWebs.Lister().MyWebs(obj.GetNamespace()).Get(obj.GetName()); err == nil {
		webs = append(webs, nameOf(web))
	}
	ports, _ := nodePorts(obj)
	for _, port := range ports {
		webs = append(webs, i.indexed(byNodePort, port)...)
	}
	return webs
}
