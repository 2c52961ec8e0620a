package config

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cabrank/cabrank/internal/strictyaml"
)

// kind is the type of a key: how its text becomes a value and back. With no more than the tags
// it is a number, a time, a size, a truth value or one of some words (see strictyaml).
type kind struct {
	tag   reflect.StructTag // of the field
	legal string            // which values are allowed; "": the tags say it

	// read stores what a text, or an item of a list, stands for. Its error says what is wrong
	// with the text, but not what is allowed; the field may hold anything then.
	read func(into any, text string) error
	// readAll stores a list; nil: each item is read.
	readAll func(into any, items []string) error
	write   func(field any) string // the inverse; nil: as it is printed

	none   string  // the word for an empty list, or no text; "": there is none
	most   int     // items of a list, or entries; 0: it is neither
	secret bool    // nobody is shown it
	nested *nested // what it consists of; nil: it is one value, or a list of them
}

// none is the word for an empty list, or text, where one has to be written.
const none = "none"

// hidden stands for a value that is not shown.
const hidden = "(hidden)"

// isList reports whether the value may be a list in the file.
func (k kind) isList() bool { return k.nested == nil && k.most > 0 || k.readAll != nil }

// set stores the value of text where field points.
func (k kind) set(field any, text string) error {
	switch {
	case k.none != "" && strings.TrimSpace(text) == k.none:
		reflect.ValueOf(field).Elem().SetZero()
		return nil
	case k.isList() && k.readAll == nil: // with commas between the items
		return k.setItems(field, strings.Split(text, ","))
	case k.read != nil:
		return k.read(field, text)
	}
	if words := k.words(); len(words) > 0 {
		if text = strings.ToLower(text); text == "pretty" && slices.Contains(words, "text") { // gruf-relay's word
			text = "text"
		}
	}
	if what := strictyaml.Set(field, k.tag, text); what != "" {
		return errors.New(what)
	}
	return nil
}

// setItems stores the items of a list.
func (k kind) setItems(field any, items []string) error {
	switch {
	case k.readAll != nil:
		return k.readAll(field, items)
	case len(items) > k.most:
		return fmt.Errorf("%d items are too many", len(items))
	}
	all := reflect.ValueOf(field).Elem()
	values := reflect.Zero(all.Type())
	for _, item := range items {
		value := reflect.New(all.Type().Elem())
		if err := k.read(value.Interface(), strings.TrimSpace(item)); err != nil {
			return err
		}
		values = reflect.Append(values, value.Elem())
	}
	all.Set(values)
	return nil
}

// words are those that the tags allow.
func (k kind) words() []string {
	return strings.FieldsFunc(k.tag.Get("oneof"), func(r rune) bool { return r == '|' })
}

// show writes a value as it could stand in a variable.
func (k kind) show(field any) (shown string) {
	v := reflect.ValueOf(field).Elem()
	switch {
	case k.nested != nil:
		return k.showNested(field)
	case k.none != "" && (v.IsZero() || v.Kind() == reflect.Slice && v.Len() == 0):
		return k.none
	case k.secret:
		return hidden
	case k.write != nil:
		return k.write(field)
	case k.isList():
		return showList(k.items(field))
	}
	switch value := field.(type) {
	case *time.Duration:
		shown = showDuration(*value)
	case *int64:
		shown = showSize(*value)
	case *float64:
		shown = strconv.FormatFloat(*value, 'f', -1, 64)
	default:
		shown = fmt.Sprint(v.Interface())
	}
	for pair := range strings.SplitSeq(k.tag.Get("word"), "|") {
		if word, stands, _ := strings.Cut(pair, "="); stands == shown {
			return word
		}
	}
	return cmp.Or(shown, `""`)
}

// items are those of a list.
func (k kind) items(field any) (items []string) {
	list := reflect.ValueOf(field).Elem()
	for i := range list.Len() {
		items = append(items, fmt.Sprint(list.Index(i).Interface()))
	}
	return items
}

// showList writes items with commas between them, or as YAML if one has a comma of its own.
func showList(items []string) string {
	joined := strings.Join(items, ", ")
	if strings.Count(joined, ",") >= len(items) {
		return inList(items, strconv.Quote)
	}
	return joined
}

// inList writes a YAML list.
func inList(items []string, write func(string) string) string {
	var texts []string
	for _, item := range items {
		texts = append(texts, write(item))
	}
	return "[" + strings.Join(texts, ", ") + "]"
}

// showDuration writes 1m0s as 1m and 1h0m0s as 1h.
func showDuration(d time.Duration) string {
	return strings.NewReplacer("h0m0s", "h", "m0s", "m").Replace(d.String())
}

// allowed says which values there may be.
func (k kind) allowed() string {
	legal := k.legal
	switch {
	case legal != "":
	case len(k.words()) > 0:
		legal = strings.Join(k.words(), ", ")
	case k.tag.Get("range") != "":
		legal = strictyaml.Range(k.tag)
	default:
		legal = "true or false"
	}
	if k.most > 0 {
		legal += fmt.Sprintf(", at most %d", k.most)
	}
	if k.none != "" {
		legal += ", or " + k.none
	}
	if k.nested != nil && k.nested.word != "" {
		legal += ", or " + k.nested.word
	}
	return legal
}
