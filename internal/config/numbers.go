package config

import (
	"cmp"
	"encoding/base64"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cabrank/cabrank/internal/strictyaml"
	"github.com/cabrank/cabrank/internal/worker"
)

// plain is the kind of fields that are a number, a time, a size, a truth value or one of
// some words: what their tags say.
type plain struct{ tag reflect.StructTag }

func (k plain) set(field any, text string) error {
	if _, is := field.(*string); is {
		if text = strings.ToLower(text); text == "pretty" && slices.Contains(k.words(), "text") { // gruf-relay's word
			text = "text"
		}
	}
	if what := strictyaml.Set(field, k.tag, text); what != "" {
		return errors.New(what)
	}
	return nil
}

func (k plain) words() []string { return strings.Split(k.tag.Get("oneof"), "|") }

func (k plain) show(field any) (shown string) {
	switch value := field.(type) {
	case *time.Duration:
		shown = showDuration(*value)
	case *float64:
		shown = strconv.FormatFloat(*value, 'f', -1, 64)
	default:
		shown = fmt.Sprint(reflect.ValueOf(field).Elem().Interface())
	}
	for pair := range strings.SplitSeq(k.tag.Get("word"), "|") {
		if word, stands, _ := strings.Cut(pair, "="); stands == shown {
			return word
		}
	}
	return shown
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

// showDuration writes 1m0s as 1m and 1h0m0s as 1h.
func showDuration(d time.Duration) string {
	return strings.NewReplacer("h0m0s", "h", "m0s", "m").Replace(d.String())
}

// Size is a number of bytes.
type Size int64

// Units of a Size, in bytes.
const (
	KiB Size = 1 << 10
	MiB Size = 1 << 20
	GiB Size = 1 << 30
)

// String returns the size in the largest unit that divides it, as in "64KiB".
func (s Size) String() string {
	for i, unit := range []Size{GiB, MiB, KiB} {
		if s != 0 && s%unit == 0 {
			return fmt.Sprintf("%d%ciB", s/unit, "GMK"[i])
		}
	}
	return strconv.FormatInt(int64(s), 10)
}

// firstAutoSlots is where slots that adapt begin: few enough for any worker,
// and so many more can be had within a second.
const firstAutoSlots = 5

// amount is the kind of *worker.Amount fields: a number of those that the tag allows, or two with
// a dash between them. auto are the bounds for which the word stands, "" if it needs some.
// What adapts begins at first, or if that is 0 at the number of before.
func amount(tag reflect.StructTag, auto string, first int) value[worker.Amount] {
	number := plain{tag}
	legal := number.allowed() + ", or two of them as in 2-16"
	if auto != "" {
		legal += ", or auto: " + auto
	}
	return value[worker.Amount]{
		read: func(a *worker.Amount, text string) error {
			bounds, isAuto := strings.CutPrefix(text, automatic)
			if bounds = strings.TrimSpace(bounds); isAuto && bounds == "" {
				bounds = auto
			}
			low, high, two := strings.Cut(bounds, "-")
			if !two || low == "" {
				a.Min, a.Max = 0, 0
				bare := flaw{isAuto && !two, "auto needs bounds, as in 2-16: the most are what the machine has memory for"}
				return cmp.Or(wrong("", bare), number.set(&a.N, text))
			}
			if first > 0 {
				a.N = first
			}
			err := cmp.Or(number.set(&a.Min, strings.TrimSpace(low)), number.set(&a.Max, strings.TrimSpace(high)))
			return cmp.Or(err, wrong("", flaw{a.Min > a.Max, fmt.Sprintf("%d is above %d", a.Min, a.Max)}))
		},
		write: func(a worker.Amount) string {
			if a.Adapts() {
				return fmt.Sprintf("%d-%d", a.Min, a.Max)
			}
			return strconv.Itoa(a.N)
		},
		legal: legal,
	}
}

// memoryLimit is the kind of *worker.MemoryLimit fields: bytes, or a share.
func memoryLimit() value[worker.MemoryLimit] {
	bytes := plain{`range:"1MiB..1024GiB" unit:"B" zero:"never"`}
	return value[worker.MemoryLimit]{
		read: func(limit *worker.MemoryLimit, text string) error {
			*limit = worker.MemoryLimit{}
			digits, isShare := strings.CutSuffix(text, "%")
			share, err := strconv.ParseFloat(digits, 64)
			fraction := !isShare && err == nil && share > 0 && share < 1
			if !isShare && !fraction {
				return bytes.set(&limit.Bytes, text)
			}
			limit.Percent = int(share)
			return wrong(quote(text),
				flaw{fraction, fmt.Sprintf("is not a share in percent; did you mean %.0f%%?", 100*share)},
				flaw{err != nil || share != math.Trunc(share), "is not a share in whole percent"},
				flaw{share < 1 || share > 100, "is out of range"})
		},
		write: func(limit worker.MemoryLimit) string {
			if limit.Percent > 0 {
				return strconv.Itoa(limit.Percent) + "%"
			}
			return Size(limit.Bytes).String()
		},
		legal: "1% to 100% of the container's limit, " + bytes.allowed(),
	}
}

// base64Bytes is the kind of *[]byte fields (RFC 4648 4). Blanks and line breaks
// between the characters are left out, as YAML blocks have them.
func base64Bytes(most Size) value[[]byte] {
	return value[[]byte]{
		read: func(into *[]byte, text string) (err error) { // the text is not repeated: it may hold secrets
			*into = nil
			if text != none {
				*into, err = base64.StdEncoding.DecodeString(strings.Join(strings.Fields(text), ""))
			}
			return wrong("", flaw{err != nil, "is not base64"}, flaw{len(*into) > int(most), fmt.Sprintf("has %d bytes", len(*into))})
		},
		write: func(message []byte) string { return cmp.Or(base64.StdEncoding.EncodeToString(message), none) },
		legal: fmt.Sprintf("base64 of at most %v, or %s", most, none),
	}
}
