package config

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
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

// wholeNumber is the kind of *int fields.
type wholeNumber struct{ min, max int }

func (k wholeNumber) set(field any, text string) error {
	n, err := strconv.Atoi(text)
	switch {
	case errors.Is(err, strconv.ErrRange):
		return fmt.Errorf("%s is out of range", quote(text))
	case err != nil:
		return fmt.Errorf("%s is not a whole number", quote(text))
	case n < k.min || n > k.max:
		return fmt.Errorf("%d is out of range", n)
	}
	*field.(*int) = n
	return nil
}

func (k wholeNumber) show(field any) string { return strconv.Itoa(*field.(*int)) }
func (k wholeNumber) allowed() string       { return fmt.Sprintf("%d to %d", k.min, k.max) }

// duration is the kind of *time.Duration fields, in Go's notation.
type duration struct {
	min, max time.Duration
	zero     string // what zero means, if that needs saying; it is then allowed, whatever min is
}

func (k duration) set(field any, text string) error {
	d, err := time.ParseDuration(text)
	if err != nil {
		if _, notNumber := strconv.ParseFloat(text, 64); notNumber == nil {
			return fmt.Errorf("%s has no unit, as in %ss", quote(text), text)
		}
		return fmt.Errorf("%s is not a duration", quote(text))
	}
	if (d < k.min || d > k.max) && (d != 0 || k.zero == "") {
		return fmt.Errorf("%s is out of range", showDuration(d))
	}
	*field.(*time.Duration) = d
	return nil
}

func (k duration) show(field any) string { return showDuration(*field.(*time.Duration)) }

func (k duration) allowed() string {
	text := showDuration(k.min) + " to " + showDuration(k.max)
	switch {
	case k.zero == "":
		return text
	case k.min > 0:
		return text + ", or 0s: " + k.zero
	}
	return text + " (0s: " + k.zero + ")"
}

// showDuration writes 1m0s as 1m and 1h0m0s as 1h.
func showDuration(d time.Duration) string {
	text := d.String()
	if d != 0 && strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// toggle is the kind of *bool fields.
type toggle struct{}

func (toggle) set(field any, text string) error {
	on, err := strconv.ParseBool(text) // what gruf-relay took
	if err != nil {
		switch strings.ToLower(text) {
		case "yes", "on":
			on = true
		case "no", "off":
			on = false
		default:
			return fmt.Errorf("%s is neither true nor false", quote(text))
		}
	}
	*field.(*bool) = on
	return nil
}

func (toggle) show(field any) string { return strconv.FormatBool(*field.(*bool)) }
func (toggle) allowed() string       { return "true or false" }

// oneOf is the kind of *string fields with a fixed set of words, in any case.
type oneOf struct {
	words []string
	also  map[string]string // older words that still work, and what they mean now
}

func (k oneOf) set(field any, text string) error {
	word := strings.ToLower(text)
	if meaning, older := k.also[word]; older {
		word = meaning
	}
	if !slices.Contains(k.words, word) {
		return fmt.Errorf("%s is unknown%s", quote(text), didYouMean("", word, k.words))
	}
	*field.(*string) = word
	return nil
}

func (k oneOf) show(field any) string { return *field.(*string) }
func (k oneOf) allowed() string       { return strings.Join(k.words, ", ") }

// freeText is the kind of other *string fields; clean checks and tidies.
type freeText struct {
	clean func(string) (string, error)
	legal string
}

func (k freeText) set(field any, raw string) error {
	value, err := k.clean(raw)
	if err != nil {
		return err
	}
	*field.(*string) = value
	return nil
}

func (k freeText) show(field any) string {
	if value := *field.(*string); value != "" {
		return value
	}
	return `""`
}

func (k freeText) allowed() string { return k.legal }

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
