package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"syscall"
)

// sum reads a file and returns its size and SHA-256. It ends early with ctx.
func sum(ctx context.Context, path string) (checksum, error) {
	f, err := os.Open(path)
	if err != nil {
		return checksum{}, err
	}
	defer func() { _ = f.Close() }()
	hash := sha256.New()
	size, err := io.Copy(hash, contextReader{ctx, f})
	return checksum{Size: size, SHA256: hex.EncodeToString(hash.Sum(nil))}, err
}

// contextReader is a reader that ends with a context.
type contextReader struct {
	ctx context.Context
	io.Reader
}

func (r contextReader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.Reader.Read(p)
}

// syncPath makes a file's content, or a directory's names, durable.
func syncPath(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return volumeFault("open to sync", err)
	}
	err = f.Sync()
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.ENOTSUP) { // file systems that cannot sync a directory
		err = nil
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return volumeFault("sync", err)
	}
	return nil
}
