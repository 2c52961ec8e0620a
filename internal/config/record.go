package config

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// record is the kind of fields that are structs: one mapping of parts, which their tags name.
type record struct {
	form  string
	check func(value any, node *yaml.Node, at *outline) // of one whose parts are right; nil: all is right then
}

func (k record) set(field any, text string) error {
	if text != none {
		return fmt.Errorf("%s is not of the form %s", quote(text), k.form)
	}
	reflect.ValueOf(field).Elem().SetZero()
	return nil
}

func (k record) setNode(field any, node *yaml.Node, at *outline) {
	value := reflect.New(reflect.TypeOf(field).Elem())
	switch {
	case isEmpty(node):
	case node.Kind != yaml.MappingNode:
		at.fault(node, at.key, "is not of the form "+k.form, k.allowed())
	default:
		if readParts(value, at.key, node, at); len(at.faults) == 0 && k.check != nil {
			k.check(value.Interface(), node, at)
		}
	}
	if len(at.faults) == 0 {
		reflect.ValueOf(field).Elem().Set(value.Elem())
	}
}

func (k record) show(field any) string { return showLines(k.lines(field)) }

func (k record) lines(field any) (lines []line) {
	for _, text := range shownParts(reflect.ValueOf(field).Elem()) {
		name, _, _ := strings.Cut(text, ":")
		lines = append(lines, line{name, text})
	}
	return lines
}

func (k record) allowed() string { return k.form + ", or " + none }

// readParts fills a struct from a mapping.
func readParts(value reflect.Value, path string, node *yaml.Node, at *outline) {
	parts := fieldsOf(value.Type().Elem())
	at.pairs(node, func(part string) string { return path + "." + part }, func(path, name string, key, of *yaml.Node) {
		i := slices.IndexFunc(parts, func(p field) bool { return p.name == name })
		if i < 0 {
			unknownPart(path, name, key, parts, at)
		} else if what := storeNode(of, parts[i].kind, parts[i].of(value.Elem())); what != "" {
			at.fault(key, path, what, parts[i].kind.allowed())
		}
	})
}

func unknownPart(path, name string, key *yaml.Node, parts []field, at *outline) {
	switch now, hint := whereMoved(path), didYouMean("", name, partNames(parts)); {
	case now != "":
		at.fault(key, path, now, "")
	case hint != "":
		at.fault(key, path, "unknown key"+hint, "")
	default:
		at.fault(key, path, "unknown key", strings.Join(partNames(parts), ", "))
	}
}

func partNames(parts []field) (names []string) {
	for _, p := range parts {
		names = append(names, p.name)
	}
	return names
}

// shownParts writes the parts of a struct, but for what is as if it had not been written.
func shownParts(value reflect.Value) (shown []string) {
	unset := reflect.New(value.Type()).Elem()
	for _, p := range fieldsOf(value.Type()) {
		told := p.kind.show(p.of(value))
		if told == p.kind.show(p.of(unset)) {
			continue
		}
		switch value := p.of(value).(type) {
		case *[]string:
			told = "[" + joinYAML(*value) + "]"
		case *string:
			if k, is := p.kind.(text); !is || !k.hidden {
				told = yamlText(*value)
			}
		}
		shown = append(shown, p.name+": "+told)
	}
	return shown
}

// joinYAML writes the inside of a list.
func joinYAML(items []string) string {
	texts := make([]string, len(items))
	for i, item := range items {
		texts[i] = yamlText(item)
	}
	return strings.Join(texts, ", ")
}
