package relay

import (
	"bytes"
	"strings"
)

// patterns maps methods to values: by whole name, "/package.Service/Method", or else by
// service, "/package.Service/*".
//
// Concurrency: immutable once made.
type patterns[T any] map[string]T

// add sets the value for the methods of a pattern.
func (p patterns[T]) add(pattern string, said T) {
	p[strings.TrimSuffix(pattern, "*")] = said
}

// find returns the value for the method of a path.
func (p patterns[T]) find(path []byte) (said T, found bool) {
	if len(p) == 0 {
		return said, false
	}
	if said, found = p[string(path)]; found {
		return said, true
	}
	said, found = p[string(path[:bytes.LastIndexByte(path, '/')+1])]
	return said, found
}
