package manifests

const (
	name      = "memcached-operator"
	namespace = name + "-system"
)
