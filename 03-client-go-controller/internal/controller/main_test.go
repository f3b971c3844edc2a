package controller

import (
	"flag"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/onsi/gomega"

	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"example.com/operator-workshop/03-client-go-controller/internal/testenv"
)

// config is for the API server of these tests.
var config *rest.Config

func TestMain(m *testing.M) {
	flag.Parse()
	if !testing.Verbose() {
		klog.LogToStderr(false)
		klog.SetOutput(io.Discard)
	}
	parallel := flag.Lookup("test.parallel").Value // most tests wait most of the time
	if err := parallel.Set("6"); err != nil {
		panic(err)
	}
	gomega.SetDefaultEventuallyTimeout(20 * time.Second)
	gomega.SetDefaultEventuallyPollingInterval(20 * time.Millisecond)
	gomega.SetDefaultConsistentlyDuration(1500 * time.Millisecond)
	gomega.SetDefaultConsistentlyPollingInterval(50 * time.Millisecond)
	os.Exit(testenv.Main(m, func(cfg *rest.Config) error { config = cfg; return nil },
		filepath.Join("..", "..", "config", "crd")))
}
