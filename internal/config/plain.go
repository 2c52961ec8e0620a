package config

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cabrank/cabrank/internal/strictyaml"
)

// plain is the kind of fields that are a number, a time, a size, a truth value or one of
// some words: what their tags say.
type plain struct{ tag reflect.StructTag }

func (k plain) set(field any, text string) error {
	switch into := field.(type) {
	case *bool:
		on, err := strconv.ParseBool(text) // what gruf-relay took
		if err == nil {
			*into = on
			return nil
		}
	case *string:
		if text = strings.ToLower(text); text == "pretty" && slices.Contains(k.words(), "text") { // gruf-relay's word
			text = "text"
		}
	}
	if what := strictyaml.Set(field, k.tag, text); what != "" {
		return errors.New(what)
	}
	return nil
}

// oneOf is the kind of *string fields with these words.
func oneOf(words []string) plain {
	return plain{reflect.StructTag(`oneof:"` + strings.Join(words, "|") + `"`)}
}

func (k plain) words() []string { return strings.Split(k.tag.Get("oneof"), "|") }

func (k plain) show(field any) string {
	if word, stands, has := strings.Cut(k.tag.Get("word"), "="); has && showPlain(field) == stands {
		return word
	}
	return showPlain(field)
}

func (k plain) allowed() string {
	switch {
	case k.tag.Get("oneof") != "":
		return strings.Join(k.words(), ", ")
	case k.tag.Get("range") == "":
		return "true or false"
	}
	return strictyaml.Range(k.tag)
}

func showPlain(field any) string {
	switch value := field.(type) {
	case *time.Duration:
		return showDuration(*value)
	case *float64:
		return strconv.FormatFloat(*value, 'f', -1, 64)
	}
	return fmt.Sprint(reflect.ValueOf(field).Elem().Interface())
}

// showDuration writes 1m0s as 1m and 1h0m0s as 1h.
func showDuration(d time.Duration) string {
	return strings.NewReplacer("h0m0s", "h", "m0s", "m").Replace(d.String())
}
