package window

import (
	"bytes"
	"context"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"example.com/operator-workshop/scripts/examine/cluster"
	"example.com/operator-workshop/scripts/internal/testkit"
	"example.com/operator-workshop/scripts/internal/tools"
)

// startCluster starts a local cluster with the lens, the finished operator of chapter 04, and the window.
func startCluster(t *testing.T) (f *fixture, c *cluster.Cluster, operator *exec.Cmd) {
	t.Helper()
	root, err := filepath.Abs("../../..")
	testkit.Must(t, err)
	bin, chapter := filepath.Join(root, "bin"), filepath.Join(root, "04-controller-runtime")
	builder := tools.Builder{Root: root, Report: tools.NewReporter(os.Stderr)}
	program := filepath.Join(t.TempDir(), "myweb-operator")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, "./cmd/myweb-operator")
	build.Dir = chapter
	c = cluster.New(bin, t.TempDir(), t.Logf)
	c.WithLens = true
	t.Cleanup(func() {
		if err := c.Down(context.Background()); err != nil {
			t.Error(err)
		}
	})
	for _, do := range []func() error{
		func() error { return builder.Ensure(t.Context(), tools.Local...) },
		func() error {
			return builder.Program(t.Context(), filepath.Join(root, "scripts", "examine"), "./cmd/lens", cluster.Lens)
		},
		build.Run,
		func() error {
			crds, _ := filepath.Glob(filepath.Join(chapter, "config", "crd", "*.yaml"))
			return c.Up(t.Context(), crds...)
		},
	} {
		testkit.Must(t, do())
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	t.Setenv("KUBECONFIG", c.Kubeconfig())
	t.Setenv("KUBECACHEDIR", c.KubectlCache())
	f = start(t)
	f.Ledger = c.Ledger()
	f.Objects = func() (Reader, error) { return c.Reader() }
	operator = exec.CommandContext(t.Context(), program, "--health-probe-bind-address=0")
	operator.Stderr = &bytes.Buffer{}
	testkit.Must(t, operator.Start())
	t.Cleanup(func() {
		_ = operator.Process.Kill()
		_ = operator.Wait()
		if t.Failed() {
			t.Logf("the operator's log:\n%s", operator.Stderr)
		}
	})
	return f, c, operator
}

// TestTheLoopOfALocalCluster plays a reader's session: a MyWeb is made, its ConfigMap deleted, the operator killed. The
// test writes the pictures of the README into WINDOW_PICTURES.
func TestTheLoopOfALocalCluster(t *testing.T) {
	f, _, operator := startCluster(t)
	ctx := f.browser(t)
	picture := func(name string) {
		t.Helper()
		if folder := os.Getenv("WINDOW_PICTURES"); folder != "" {
			writePicture(t, ctx, filepath.Join(folder, name+".png"))
		}
	}
	do(t, ctx, chromedp.EmulateViewport(1120, 700), chromedp.Click("#tab-loop"), chromedp.Click("#wide"))
	says(t, ctx, ".heads", "myweb-operator")
	apply := exec.CommandContext(t.Context(), "kubectl", "apply", "-f", "../../../04-controller-runtime/config/samples/myweb.yaml")
	if out, err := apply.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	says(t, ctx, ".arrows", "apply configmaps myweb 201 moved")
	says(t, ctx, ".tree", "owner: MyWeb myweb (controller)")
	says(t, ctx, ".tree", "Available=True")
	picture("1-a-myweb-becomes-children")
	child := `//div[@class="tree"]//button[contains(., "ConfigMap myweb")]`
	do(t, ctx, chromedp.WaitVisible(child), chromedp.Click(child))
	says(t, ctx, ".legend", "myweb-operator: Apply")
	picture("2-the-fields-of-a-child")
	remove := `//button[text()="Delete this ConfigMap"]`
	do(t, ctx, chromedp.Click(`//section[@class="yaml"]//button`), chromedp.WaitVisible(remove), chromedp.Click(remove))
	says(t, ctx, ".arrows", "ConfigMap myweb DELETED")
	twice := `[...document.querySelectorAll(".arrow.write")].filter(a => a.textContent.includes("apply configmaps myweb 201 moved")).length === 2`
	do(t, ctx, chromedp.Poll(twice, nil))
	says(t, ctx, ".side .verdict", "done")
	picture("3-a-deleted-child-comes-back")
	do(t, ctx, chromedp.Evaluate(`[...document.querySelectorAll(".arrow.write")].filter(a => a.textContent.includes("apply configmaps"))[1].click()`, nil))
	says(t, ctx, ".loop-detail", "DELETED was delivered: that is the order, not a cause.")
	picture("4-what-came-before-the-write")
	kill := `//button[text()="Kill myweb-operator"]`
	do(t, ctx, chromedp.WaitVisible(kill), chromedp.Click(kill))
	ended := make(chan struct{})
	go func() {
		_ = operator.Wait() // its error is that of the kill
		close(ended)
	}()
	select {
	case <-ended:
	case <-time.After(time.Minute):
		t.Fatal("the operator runs on")
	}
	do(t, ctx, chromedp.WaitNotPresent(kill))
}

// TestTheLoopOfAClusterThatBreaks kills the lens and the API server, and replaces the cluster.
func TestTheLoopOfAClusterThatBreaks(t *testing.T) {
	f, c, _ := startCluster(t)
	ctx := f.browser(t)
	do(t, ctx, chromedp.Click("#tab-loop"))
	says(t, ctx, ".loop-status", "live at")
	repair := func() {
		t.Helper()
		testkit.Must(t, c.Up(t.Context()))
		says(t, ctx, ".loop-status", "live at")
	}
	reports := map[string]string{cluster.Lens: "the lens does not run", "kube-apiserver": "the API server does not answer"}
	for name, want := range reports {
		testkit.Must(t, c.Signal(name, syscall.SIGKILL))
		says(t, ctx, ".loop-status", want)
		if name != cluster.Lens {
			says(t, ctx, ".arrows", "no answer")
		}
		repair()
	}
	testkit.Must(t, c.Down(t.Context()))
	says(t, ctx, ".loop-status", "No local cluster with the lens runs")
	testkit.Must(t, c.Up(t.Context()))
	says(t, ctx, ".loop-status", "a new cluster, since")
}

// writePicture writes a picture of the window, in the 256 colours that the window uses most.
func writePicture(t *testing.T, ctx context.Context, path string) {
	t.Helper()
	var shot []byte
	do(t, ctx, chromedp.Sleep(300*time.Millisecond), chromedp.CaptureScreenshot(&shot))
	full, err := png.Decode(bytes.NewReader(shot))
	testkit.Must(t, err)
	small := image.NewPaletted(full.Bounds(), mostUsed(full))
	draw.Draw(small, full.Bounds(), full, image.Point{}, draw.Src)
	var data bytes.Buffer
	encoder := png.Encoder{CompressionLevel: png.BestCompression}
	testkit.Must(t, encoder.Encode(&data, small))
	if data.Len() > 80_000 {
		t.Errorf("%s has %d bytes", path, data.Len())
	}
	testkit.Must(t, os.WriteFile(path, data.Bytes(), 0o644))
}

// mostUsed returns the colours that a picture uses most.
func mostUsed(full image.Image) (palette color.Palette) {
	count := map[color.Color]int{}
	bounds := full.Bounds()
	for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
		for x := bounds.Min.X; x < bounds.Max.X; x++ {
			count[full.At(x, y)]++
		}
	}
	all := slices.SortedFunc(maps.Keys(count), func(a, b color.Color) int { return count[b] - count[a] })
	return append(palette, all[:min(len(all), 256)]...)
}
