package config

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
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

// itemized is a kind whose value is a list in the file.
type itemized interface {
	kind
	setItems(field any, items []string) error
	items(field any) []string
}

// none is the word for an empty list, or text, where one has to be written.
const none = "none"

// hidden stands for a value that is not shown.
const hidden = "(hidden)"

// value is the kind of *T fields that have a form of their own. read changes the value that
// there is.
type value[T any] struct {
	read  func(into *T, text string) error
	write func(T) string
	legal string
}

func (k value[T]) set(field any, text string) error {
	v := *field.(*T)
	err := k.read(&v, text)
	if err == nil {
		*field.(*T) = v
	}
	return err
}

func (k value[T]) show(field any) string { return k.write(*field.(*T)) }

func (k value[T]) allowed() string { return k.legal }

// words is the kind of fields whose values have names.
func words[T fmt.Stringer](all ...T) value[T] {
	return value[T]{
		read: func(into *T, text string) error {
			var word string
			err := plain{reflect.StructTag(`oneof:"` + strings.Join(names(all), "|") + `"`)}.set(&word, text)
			if err == nil {
				*into = all[slices.Index(names(all), word)]
			}
			return err
		},
		write: func(v T) string { return v.String() },
		legal: strings.Join(names(all), ", "),
	}
}

func names[T fmt.Stringer](of []T) (names []string) {
	for _, value := range of {
		names = append(names, value.String())
	}
	return names
}

// text is the kind of string fields that are no word of a few; clean checks and tidies.
type text struct {
	clean  func(string) (string, error)
	legal  string
	orNone bool // the word is for no text
	secret bool // nobody is shown it
}

func (k text) set(field any, text string) (err error) {
	if k.orNone && text == none {
		text = ""
	} else if text, err = k.clean(text); err != nil {
		return err
	}
	*field.(*string) = text
	return nil
}

func (k text) show(field any) string {
	switch text := *field.(*string); {
	case k.orNone && text == "":
		return none
	case k.secret:
		return hidden
	default:
		return cmp.Or(text, `""`)
	}
}

func (k text) allowed() string {
	if k.orNone {
		return k.legal + ", or " + none
	}
	return k.legal
}

// list is the kind of *[]T fields, of strings or of what has a String method: items with
// commas between them in a variable or a flag, a sequence in the file.
type list[T any] struct {
	read  func(item string) (T, error)
	legal string
	max   int    // items
	empty string // the word for none of them
}

func listOf[T any](read func(string) (T, error), legal string, most int) list[T] {
	return list[T]{read, legal, most, none}
}

func (k list[T]) set(field any, raw string) error {
	if strings.TrimSpace(raw) == k.empty {
		return k.setItems(field, nil)
	}
	return k.setItems(field, strings.Split(raw, ","))
}

func (k list[T]) setItems(field any, items []string) error {
	if len(items) > k.max {
		return fmt.Errorf("%d items are too many", len(items))
	}
	values := make([]T, 0, len(items))
	for _, item := range items {
		value, err := k.read(strings.TrimSpace(item))
		if err != nil {
			return err
		}
		values = append(values, value)
	}
	*field.(*[]T) = values
	return nil
}

func (k list[T]) items(field any) (items []string) {
	for _, value := range *field.(*[]T) {
		items = append(items, fmt.Sprint(value))
	}
	return items
}

func (k list[T]) show(field any) string {
	items := k.items(field)
	joined := strings.Join(items, ", ")
	switch {
	case len(items) == 0:
		return k.empty
	case strings.Count(joined, ",") >= len(items): // an item has a comma of its own
		return inList(items, strconv.Quote)
	}
	return joined
}

func (k list[T]) allowed() string {
	return fmt.Sprintf("%s, at most %d, or %s", k.legal, k.max, k.empty)
}

// inList writes a YAML list.
func inList(items []string, write func(string) string) string {
	var texts []string
	for _, item := range items {
		texts = append(texts, write(item))
	}
	return "[" + strings.Join(texts, ", ") + "]"
}

// formed accepts text of one of the forms. what says of another text what is wrong with it,
// with %s for the text where it may be repeated.
func formed(form, what string) func(string) (string, error) {
	return func(text string) (string, error) {
		if !forms[form].MatchString(text) {
			return "", errors.New(strings.Replace(what, "%s", quote(text), 1))
		}
		return text, nil
	}
}

// flaw is what is wrong with a text, if it is so.
type flaw struct {
	so   bool
	what string
}

// wrong is an error by the first that is so of a text; told is the text, where it may be repeated.
func wrong(told string, flaws ...flaw) error {
	for _, f := range flaws {
		if f.so {
			return errors.New(strings.TrimSpace(told + " " + f.what))
		}
	}
	return nil
}

// accepted is a check by what cleans.
func accepted(clean func(string) (string, error)) func(string) error {
	return func(text string) error {
		_, err := clean(text)
		return err
	}
}
