package image

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

const (
	// user is the user that distroless images call nonroot: any number but 0 would do.
	user = "65532:65532"
	// programPath is where the image has the program. The Dockerfile says the same.
	programPath = "/myweb-operator"
	// certificatesPath is the first place where Go looks on Linux.
	certificatesPath = "/etc/ssl/certs/ca-certificates.crt"
	// source is where the label of the image says that the program comes from.
	source = "https://example.com/operator-workshop"
)

// created is the time that the image and its files claim. With a clock, each build would differ.
var created = time.Unix(0, 0).UTC()

// Build compiles an operator and returns its image and the image's name.
func Build(ctx context.Context, o Options) (v1.Image, name.Tag, error) {
	tag, err := name.NewTag(o.Name)
	if err != nil {
		return nil, tag, fmt.Errorf("--name: %w: give something like myweb-operator:workshop", err)
	}
	if err := o.check(); err != nil {
		return nil, tag, err
	}
	folder, err := os.MkdirTemp("", "image-")
	if err != nil {
		return nil, tag, err
	}
	defer os.RemoveAll(folder)
	file := filepath.Join(folder, "program")
	if err := Compile(ctx, o, file); err != nil {
		return nil, tag, err
	}
	program, err := os.ReadFile(file)
	if err != nil {
		return nil, tag, err
	}
	image, err := assemble(o, program)
	return image, tag, err
}

// assemble puts a program into an image that contains only the program and certificates: no shell, no libc, no file
// that its user may change. The layer that changes less often comes first: a node that has the layer does not pull it
// again.
func assemble(o Options, program []byte) (v1.Image, error) {
	var layers []mutate.Addendum
	for _, part := range []struct {
		says  string
		files []file
	}{
		{"certificates of public authorities", []file{{"/etc/", nil, 0o755}, {"/etc/ssl/", nil, 0o755},
			{"/etc/ssl/certs/", nil, 0o755}, {certificatesPath, certificates(), 0o444}}},
		{"the operator", []file{{programPath, program, 0o555}}},
	} {
		archive, err := archived(part.files)
		if err != nil {
			return nil, err
		}
		layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
			return io.NopCloser(bytes.NewReader(archive)), nil
		})
		if err != nil {
			return nil, err
		}
		layers = append(layers,
			mutate.Addendum{Layer: layer, History: v1.History{Created: v1.Time{Time: created}, CreatedBy: part.says}})
	}
	image, err := mutate.Append(empty.Image, layers...)
	if err != nil {
		return nil, err
	}
	return mutate.ConfigFile(image, configured(image, o))
}

// configured returns the configuration of the image, with entrypoint, user and labels.
func configured(image v1.Image, o Options) *v1.ConfigFile {
	config, err := image.ConfigFile()
	if err != nil {
		panic(err) // not possible: the image is in memory
	}
	config = config.DeepCopy()
	config.Created, config.OS, config.Architecture = v1.Time{Time: created}, "linux", o.Arch
	config.Config = v1.Config{
		User:       user,
		Entrypoint: []string{programPath},
		WorkingDir: "/",
		Labels: map[string]string{
			"org.opencontainers.image.title":    Sources[o.Impl].Title,
			"org.opencontainers.image.version":  o.Version,
			"org.opencontainers.image.revision": o.Commit,
			"org.opencontainers.image.source":   source,
		},
	}
	return config
}

// A file of a layer; a name that ends with a slash is a folder.
type file struct {
	name string
	data []byte
	mode int64
}

// archived returns the tar of a layer. Everything belongs to root, so that the program's user cannot
// change it.
func archived(files []file) ([]byte, error) {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, f := range files {
		header := &tar.Header{Typeflag: tar.TypeReg, Name: strings.TrimPrefix(f.name, "/"), Mode: f.mode,
			Size: int64(len(f.data)), ModTime: created}
		if strings.HasSuffix(f.name, "/") {
			header.Typeflag = tar.TypeDir
		}
		if err := w.WriteHeader(header); err != nil {
			return nil, err
		}
		if _, err := w.Write(f.data); err != nil {
			return nil, err
		}
	}
	return out.Bytes(), w.Close()
}

// certificates are the authorities of Mozilla's programme, from Go's own module. The operators connect only to the API
// server, and Kubernetes mounts its authority into the pod. These certificates are for an API server with a public
// certificate. Authorities that are trusted only until a date are left out: PEM blocks have no field for this date.
func certificates() []byte {
	var out bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			_ = pem.Encode(&out, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}) // a buffer takes all
		}
	}
	return out.Bytes()
}

// Write writes an image as an archive.
func Write(path string, tag name.Tag, image v1.Image) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return tarball.WriteToFile(path, tag, image)
}

// Sizes of an image in bytes: compressed, and unpacked on a node.
type Sizes struct{ Packed, Unpacked int64 }

// Size returns the sizes of an image.
func Size(image v1.Image) (s Sizes, err error) {
	layers, err := image.Layers()
	if err != nil {
		return s, err
	}
	for _, layer := range layers {
		packed, err := layer.Size()
		if err != nil {
			return s, err
		}
		r, err := layer.Uncompressed()
		if err != nil {
			return s, err
		}
		unpacked, err := io.Copy(io.Discard, r)
		if err := errors.Join(err, r.Close()); err != nil {
			return s, err
		}
		s.Packed, s.Unpacked = s.Packed+packed, s.Unpacked+unpacked
	}
	return s, nil
}
