package scrape

import (
	"bytes"
	"cmp"
	"errors"
	"slices"
	"strings"
)

// label is one of a series.
type label struct{ name, value string }

var errLabels = errors.New("not labels")

// parseLabels reads what is between the braces of a series. The labels are in the
// order of their names; those without a value are none, as Prometheus has it.
func parseLabels(text []byte) (labels []label, err error) {
	for text = bytes.TrimLeft(text, " \t"); len(text) > 0; {
		var l label
		if l, text, err = parseLabel(text); err != nil {
			return nil, err
		}
		if l.value != "" {
			labels = append(labels, l)
		}
		if text = bytes.TrimLeft(text, " \t"); len(text) == 0 {
			break
		}
		if text[0] != ',' {
			return nil, errLabels
		}
		text = bytes.TrimLeft(text[1:], " \t")
	}
	return sorted(labels)
}

// sorted puts labels in the order of their names, of which each may be there once.
func sorted(labels []label) ([]label, error) {
	slices.SortFunc(labels, func(a, b label) int { return cmp.Compare(a.name, b.name) })
	for i := 1; i < len(labels); i++ {
		if labels[i].name == labels[i-1].name {
			return nil, errLabels
		}
	}
	return labels, nil
}

// parseLabel reads name="value".
func parseLabel(text []byte) (l label, rest []byte, err error) {
	if name, rest, ok := quoted(text); ok && len(name) > 0 {
		l.name, text = legal(unescaped(name, true), '_'), bytes.TrimLeft(rest, " \t")
	} else {
		end := nameEnd(text)
		if end == 0 || bytes.IndexByte(text[:end], ':') >= 0 {
			return l, nil, errLabels
		}
		l.name, text = string(text[:end]), bytes.TrimLeft(text[end:], " \t")
	}
	if len(text) == 0 || text[0] != '=' {
		return l, nil, errLabels
	}
	text = bytes.TrimLeft(text[1:], " \t")
	value, rest, ok := quoted(text)
	if !ok {
		return l, nil, errLabels
	}
	l.value = unescaped(value, true)
	return l, rest, nil
}

// unescaped undoes \\ and \n, and \" where quotes are escaped. What is no UTF-8
// becomes U+FFFD: other formats cannot carry it.
func unescaped(text []byte, quotes bool) string {
	if bytes.IndexByte(text, '\\') < 0 {
		return strings.ToValidUTF8(string(text), "\uFFFD")
	}
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] != '\\' || i+1 == len(text) {
			b.WriteByte(text[i])
			continue
		}
		i++
		switch c := text[i]; {
		case c == 'n':
			b.WriteByte('\n')
		case c == '\\', c == '"' && quotes:
			b.WriteByte(c)
		default:
			b.WriteByte('\\')
			b.WriteByte(c)
		}
	}
	return strings.ToValidUTF8(b.String(), "\uFFFD")
}

// key is what tells label sets apart.
func key(labels []label) string {
	if len(labels) == 0 {
		return ""
	}
	var b strings.Builder
	for _, l := range labels {
		b.WriteString(l.name)
		b.WriteByte(0xff) // in no text of UTF-8
		b.WriteString(l.value)
		b.WriteByte(0xff)
	}
	return b.String()
}

// without returns the labels without one, and its value.
func without(labels []label, name string) (rest []label, value string) {
	for i, l := range labels {
		if l.name == name {
			return slices.Delete(slices.Clone(labels), i, i+1), l.value
		}
	}
	return labels, ""
}

// with returns the labels with another one. One of that name that is there already
// becomes exported_NAME, as Prometheus has it.
func with(labels []label, name, value string) []label {
	rest, own := without(labels, name)
	rest = append(slices.Clip(rest), label{name, value})
	if own != "" {
		rest, _ = without(rest, "exported_"+name)
		rest = append(slices.Clip(rest), label{"exported_" + name, own})
	}
	slices.SortFunc(rest, func(a, b label) int { return cmp.Compare(a.name, b.name) })
	return rest
}

func has(labels []label, name string) bool {
	return slices.ContainsFunc(labels, func(l label) bool { return l.name == name })
}
