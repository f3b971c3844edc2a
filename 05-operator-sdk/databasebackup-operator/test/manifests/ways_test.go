package manifests

const (
	name      = "databasebackup-operator"
	namespace = name + "-system"
)
