// Package hardening extends the core of an operator with decorators of the reconciler, of the client and of the applier
// of children. It knows neither the kind of the owner nor its children. Of the operator it imports only the general
// packages owned and fields. The first comment of each file names the check of the lab, or the test, that fails without
// it.
package hardening
