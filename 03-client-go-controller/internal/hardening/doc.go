// Package hardening is what the operator does beyond its core. The first comment of each file names the
// check of the lab, or the test, that fails without it.
package hardening
