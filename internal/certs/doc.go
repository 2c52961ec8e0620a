// Package certs keeps the certificates by which the port serves TLS: from files, which are
// read again when they change.
//
// Start from Open.
package certs
