//go:build !linux

package window

import "os"

// isSignal reports false: elsewhere a signal key waits behind the input before it, as in other terminals.
func isSignal(*os.File, byte) bool { return false }

func flushInput(*os.File) {}
