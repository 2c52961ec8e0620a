package config

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// kind is the type of a key: how its text becomes a value and back.
//
// set stores the value of text in field, the pointer that the key's row gives;
// on an error, which says what is wrong with the text but not what is allowed,
// the field is unchanged. show is the inverse of set. allowed names the legal
// values.
type kind interface {
	set(field any, text string) error
	show(field any) string
	allowed() string
}

// text is the kind of *string fields that are no word of a few; clean checks and tidies.
type text struct {
	clean    func(string) (string, error)
	legal    string
	optional bool // it may be none
	hidden   bool // nobody is shown it
}

func (k text) set(field any, raw string) (err error) {
	value := ""
	if raw != none || !k.optional {
		if value, err = k.clean(raw); err != nil {
			return err
		}
	}
	*field.(*string) = value
	return nil
}

func (k text) show(field any) string {
	switch value := *field.(*string); {
	case value == "" && k.optional:
		return none
	case k.hidden:
		return hidden
	case value == "":
		return `""`
	default:
		return value
	}
}

func (k text) allowed() string {
	if k.optional {
		return k.legal + ", or " + none
	}
	return k.legal
}

// words is the kind of *T fields whose values have names.
type words[T fmt.Stringer] []T

func (k words[T]) set(field any, text string) error {
	var word string
	all := names(k)
	if err := oneOf(all).set(&word, text); err != nil {
		return err
	}
	*field.(*T) = k[slices.Index(all, word)]
	return nil
}

func (words[T]) show(field any) string { return (*field.(*T)).String() }

func (k words[T]) allowed() string { return strings.Join(names(k), ", ") }

func names[T fmt.Stringer](of []T) (names []string) {
	for _, value := range of {
		names = append(names, value.String())
	}
	return names
}

// itemized is a kind whose value is a list in the file.
type itemized interface {
	kind
	setItems(field any, items []string) error
}

// none is the word for an empty list where text has to be written.
const none = "none"

// list is the kind of *[]string fields: items with commas between them in a
// variable or a flag, a sequence in the file.
type list struct {
	clean func(string) (string, error)
	legal string
	max   int // items
}

func (k list) set(field any, raw string) error {
	if strings.TrimSpace(raw) == none {
		return k.setItems(field, nil)
	}
	return k.setItems(field, strings.Split(raw, ","))
}

func (k list) setItems(field any, items []string) error {
	if len(items) > k.max {
		return fmt.Errorf("%d items are too many", len(items))
	}
	values := make([]string, 0, len(items))
	for _, item := range items {
		value, err := k.clean(strings.TrimSpace(item))
		if err != nil {
			return err
		}
		values = append(values, value)
	}
	*field.(*[]string) = values
	return nil
}

func (k list) show(field any) string {
	items := *field.(*[]string)
	if len(items) == 0 {
		return none
	}
	joined := strings.Join(items, ", ")
	if strings.Count(joined, ",") >= len(items) { // an item has a comma of its own
		return fmt.Sprintf("[%s]", joinQuoted(items))
	}
	return joined
}

// joinQuoted writes the inside of a YAML list.
func joinQuoted(items []string) string {
	quoted := make([]string, len(items))
	for i, item := range items {
		quoted[i] = strconv.Quote(item)
	}
	return strings.Join(quoted, ", ")
}

func (k list) allowed() string { return fmt.Sprintf("%s, at most %d, or %s", k.legal, k.max, none) }
