package relay

import (
	"bytes"
	"strings"
)

// patterns find what is said of a method: by its whole name,
// "/package.Service/Method", or else by that of its service,
// "/package.Service/*".
//
// Concurrency: immutable once made.
type patterns[T any] map[string]T

// add says something of the methods of a pattern.
func (p patterns[T]) add(pattern string, said T) {
	p[strings.TrimSuffix(pattern, "*")] = said
}

// find returns what is said of the method of a path.
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
