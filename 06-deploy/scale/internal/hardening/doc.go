// Package hardening extends the core of an operator with decorators of its reconciler, of its client and of its applier.
// It knows neither the kind of the owner nor its children. Of the operator it imports only the general packages owned
// and fields. A comment that begins with "Demanded by" names the check of the lab, or the test, that fails without the
// code.
package hardening
