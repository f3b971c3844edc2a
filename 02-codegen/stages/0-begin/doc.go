// Package v1 is the API of MyWeb: a website of one page.
package v1
