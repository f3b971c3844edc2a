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

// Config is what a ConfigMap can say about memcached.
type Config struct {
	// MemoryMB is how many megabytes of items are kept: memcached's -m.
	MemoryMB int
	// MaxConnections is how many clients may be connected at once: -c.
	MaxConnections int
	// Verbose is how much memcached logs, 0 to 3: -v, -vv, -vvv.
	Verbose int
}

// DefaultConfig is memcached's own.
var DefaultConfig = Config{MemoryMB: 64, MaxConnections: 1024}

// ParseConfig reads the data of a ConfigMap; what it does not name stays as in DefaultConfig. The error
// names the first key that cannot be used, its value, and what is allowed.
func ParseConfig(data map[string]string) (Config, error) {
	c := DefaultConfig
	for _, k := range []struct {
		name     string
		value    *int
		min, max int
	}{
		{KeyMemory, &c.MemoryMB, 2, 1 << 20}, // memcached takes no less than two items of the largest size
		// memcached sets its limit of open files to it, and exits when that is too low for itself.
		{KeyConnections, &c.MaxConnections, 64, 1 << 16},
		{KeyVerbose, &c.Verbose, 0, 3},
	} {
		text, found := data[k.name]
		if !found {
			continue
		}
		text = strings.TrimSpace(text) // a file that was put into a ConfigMap ends with a line feed
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

// shortened is a value for a message: somebody may have put a whole file there.
func shortened(text string) string {
	if short := []rune(text); len(short) > 40 {
		return string(short[:40]) + "…"
	}
	return text
}

// args are memcached's flags. They are the whole of a pod's configuration: when the ConfigMap changes they
// change too, and the Deployment replaces its pods by itself. A hash of the ConfigMap is needed only where
// pods read it as a file.
func (c Config) args(port int32) []string {
	args := []string{"-p", strconv.Itoa(int(port)), "-m", strconv.Itoa(c.MemoryMB), "-c", strconv.Itoa(c.MaxConnections)}
	if c.Verbose > 0 {
		args = append(args, "-"+strings.Repeat("v", c.Verbose))
	}
	return args
}

// memory is what a pod gets: -m bounds only the items. To it come a quarter for the hash table and for
// what is lost between items of different sizes, 24 KiB for the buffers of each connection, and 64 MiB for
// the program, its threads, and the first page of each of its 40 or so sizes of items, which memcached
// takes even when -m is used up.
func (c Config) memory() resource.Quantity {
	const mebi = 1 << 20
	bytes := int64(c.MemoryMB)*mebi*5/4 + int64(c.MaxConnections)*(24<<10) + 64*mebi
	return *resource.NewQuantity((bytes+mebi-1)/mebi*mebi, resource.BinarySI) // whole MiB are easier to read
}
