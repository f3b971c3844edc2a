package main

import "slices"

// Verbs, in the order of the usage line.
const (
	verbBackup  = "backup"
	verbRestore = "restore"
	verbDelete  = "delete"
	verbScratch = "scratch"
)

var verbs = []string{verbBackup, verbRestore, verbDelete, verbScratch}

// Mode is how a backup is verified.
type Mode string

const (
	ModeNone    Mode = "None"
	ModeArchive Mode = "Archive" // size, checksum, table of contents
	ModeRestore Mode = "Restore" // Archive, then restored into a scratch server, rows counted
)

// modes are ordered: each mode includes the modes before it.
var modes = []Mode{ModeNone, ModeArchive, ModeRestore}

// includes reports whether a verification in mode m includes a verification in the other mode.
func (m Mode) includes(other Mode) bool { return slices.Index(modes, m) >= slices.Index(modes, other) }
