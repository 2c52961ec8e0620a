package config

import (
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"
)

// record is the kind of *T fields: one mapping with parts that the table knows.
type record[T any] struct {
	form  string
	table []part[T]
	check func(value *T, node *yaml.Node, at *outline) // of one whose parts are right
}

func (k record[T]) set(field any, text string) error {
	if text != none {
		return fmt.Errorf("%s is not of the form %s", quote(text), k.form)
	}
	*field.(*T) = *new(T)
	return nil
}

func (k record[T]) setNode(field any, node *yaml.Node, at *outline) {
	value := new(T)
	switch {
	case isEmpty(node):
	case node.Kind != yaml.MappingNode:
		at.fault(node, at.key, "is not of the form "+k.form, k.allowed())
	default:
		if k.read(value, at.key, node, at); len(at.faults) == 0 {
			k.check(value, node, at)
		}
	}
	if len(at.faults) == 0 {
		*field.(*T) = *value
	}
}

// read reads the parts of a mapping.
func (k record[T]) read(value *T, path string, node *yaml.Node, at *outline) {
	parts := entries[T]{table: k.table}
	at.pairs(node, func(part string) string { return path + "." + part }, func(path, name string, key, of *yaml.Node) {
		parts.part(value, path, name, key, of, at)
	})
}

func (k record[T]) show(field any) string { return showLines(k.lines(field)) }

func (k record[T]) lines(field any) (lines []line) {
	for _, text := range (entries[T]{table: k.table}).shownParts(field.(*T)) {
		name, _, _ := strings.Cut(text, ":")
		lines = append(lines, line{name, text})
	}
	return lines
}

func (k record[T]) allowed() string { return k.form + ", or " + none }

func (k record[T]) parts() []partInfo { return entries[T]{table: k.table}.parts() }

// single tells it from lists of entries.
func (record[T]) single() {}
