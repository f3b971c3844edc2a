// Package output collects what processes print.
package output

import (
	"fmt"
	"sync"
)

// Kept is how much of the beginning, and how much of the end, a Buffer keeps: a program may print without end.
const Kept = 1 << 20

// A Buffer keeps the first and the last megabyte. It may be read while processes write to it.
type Buffer struct {
	mu    sync.Mutex
	first []byte
	last  []byte // at most twice the kept size
	total int64
}

func (b *Buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.total += int64(len(p))
	n := min(len(p), Kept-len(b.first))
	b.first, b.last = append(b.first, p[:n]...), append(b.last, p[n:]...)
	if len(b.last) > 2*Kept {
		b.last = append(b.last[:0], b.last[len(b.last)-Kept:]...)
	}
	return len(p), nil
}

// Total returns how many bytes were written.
func (b *Buffer) Total() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.total
}

// String returns the written text; a line in place of an omitted part states its size.
func (b *Buffer) String() string { return b.Since(0) }

// Since returns the text that was written after the first n bytes.
func (b *Buffer) Since(n int64) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	last := b.last[max(0, len(b.last)-Kept):]
	begin := b.total - int64(len(last)) // where last begins
	if n >= begin {
		return string(last[min(n-begin, int64(len(last))):])
	}
	first := b.first[min(n, int64(len(b.first))):]
	left := begin - max(n, int64(len(b.first)))
	if left == 0 {
		return string(first) + string(last)
	}
	return fmt.Sprintf("%s\n… %d bytes of output are left out here: the first and the last %d are kept …\n%s",
		first, left, Kept, last)
}
