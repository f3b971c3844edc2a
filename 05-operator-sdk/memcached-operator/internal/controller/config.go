package controller

import (
	"fmt"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
)

// Keys of the ConfigMap that spec.configRef names. Other keys are not read.
const (
	KeyMemory      = "memoryMB"
	KeyConnections = "maxConnections"
	KeyVerbose     = "verbose"
)

// Config has the settings of memcached that a ConfigMap can contain.
type Config struct {
	// MemoryMB limits the items, in megabytes: memcached's -m.
	MemoryMB int
	// MaxConnections limits the clients that are connected at once: -c.
	MaxConnections int
	// Verbose is the log level of memcached, 0 to 3: -v, -vv, -vvv.
	Verbose int
}

// DefaultConfig has memcached's own defaults.
var DefaultConfig = Config{MemoryMB: 64, MaxConnections: 1024}

// ParseConfig reads the data of a ConfigMap; a missing key keeps the value of DefaultConfig. The error names
// the first key with an invalid value, this value, and the allowed values.
func ParseConfig(data map[string]string) (Config, error) {
	c := DefaultConfig
	for _, k := range []struct {
		name     string
		value    *int
		min, max int
	}{
		{KeyMemory, &c.MemoryMB, 2, 1 << 20}, // memcached needs at least two items of the largest size
		// memcached sets its limit of open files to this number, and exits when the limit is too low.
		{KeyConnections, &c.MaxConnections, 64, 1 << 16},
		{KeyVerbose, &c.Verbose, 0, 3},
	} {
		text, found := data[k.name]
		if !found {
			continue
		}
		text = strings.TrimSpace(text) // a value from a file ends with a line feed
		number, err := strconv.Atoi(text)
		switch {
		case k.name == KeyVerbose && text == "true":
			number, err = 1, nil
		case k.name == KeyVerbose && text == "false":
			number, err = 0, nil
		}
		if err != nil || number < k.min || number > k.max {
			return DefaultConfig, fmt.Errorf("%s is %q: it must be an integer from %d to %d",
				k.name, shortened(text), k.min, k.max)
		}
		*k.value = number
	}
	return c, nil
}

// shortened shortens a value for a message, because the value may be a whole file.
func shortened(text string) string {
	if short := []rune(text); len(short) > 40 {
		return string(short[:40]) + "…"
	}
	return text
}

// args returns memcached's flags. They are the whole configuration of a pod: when the ConfigMap changes they
// change too, and the Deployment replaces its pods. A hash of the ConfigMap is needed only where pods read it
// as a file.
func (c Config) args(port int32) []string {
	args := []string{"-p", strconv.Itoa(int(port)), "-m", strconv.Itoa(c.MemoryMB), "-c", strconv.Itoa(c.MaxConnections)}
	if c.Verbose > 0 {
		args = append(args, "-"+strings.Repeat("v", c.Verbose))
	}
	return args
}

// memory returns the memory of a pod. -m limits only the items. memory adds 25% for the hash table and for
// the space lost between items of different sizes, 24 KiB for the buffers of each connection, and 64 MiB for
// the program, its threads, and the first page of each of its about 40 sizes of items, which memcached
// allocates even when -m is used up.
func (c Config) memory() resource.Quantity {
	const mebi = 1 << 20
	bytes := int64(c.MemoryMB)*mebi*5/4 + int64(c.MaxConnections)*(24<<10) + 64*mebi
	return *resource.NewQuantity((bytes+mebi-1)/mebi*mebi, resource.BinarySI) // whole MiB are easier to read
}
