package config

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/cabrank/cabrank/internal/worker"
)

// showSize writes bytes in the largest unit that divides them, as in "64KiB".
func showSize(bytes int64) string {
	for i, unit := range []int64{1 << 30, 1 << 20, 1 << 10} {
		if bytes != 0 && bytes%unit == 0 {
			return fmt.Sprintf("%d%ciB", bytes/unit, "GMK"[i])
		}
	}
	return strconv.FormatInt(bytes, 10)
}

// maxMessage bounds the message of the warm-up, in bytes.
const maxMessage = 64 << 10

// firstAutoSlots is where slots that adapt begin: few enough for any worker,
// and so many more can be had within a second.
const firstAutoSlots = 5

// amount is the kind of *worker.Amount fields: a number of those that the tag allows, or two with
// a dash between them. auto are the bounds for which the word stands, "" if it needs some.
// What adapts begins at first, or if that is 0 at the number of before.
func amount(tag reflect.StructTag, auto string, first int) kind {
	number := kind{tag: tag}
	legal := number.allowed() + ", or two of them as in 2-16"
	if auto != "" {
		legal += ", or auto: " + auto
	}
	return kind{
		read: func(into any, text string) error {
			a := into.(*worker.Amount)
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
		write: showAmount,
		legal: legal,
	}
}

func showAmount(field any) string {
	a := field.(*worker.Amount)
	if a.Adapts() {
		return fmt.Sprintf("%d-%d", a.Min, a.Max)
	}
	return strconv.Itoa(a.N)
}

// memoryBytes are the tags of a memory limit in bytes.
const memoryBytes = `range:"1MiB..1024GiB" unit:"B" zero:"never"`

// readMemory reads bytes, or a share.
func readMemory(into any, text string) error {
	limit := into.(*worker.MemoryLimit)
	*limit = worker.MemoryLimit{}
	if digits, isShare := strings.CutSuffix(text, "%"); isShare {
		return kind{tag: `range:"1..100"`}.set(&limit.Percent, digits)
	}
	share, err := strconv.ParseFloat(text, 64)
	fraction := flaw{err == nil && share > 0 && share < 1, fmt.Sprintf("is not a share in percent; did you mean %.0f%%?", 100*share)}
	return cmp.Or(wrong(quote(text), fraction), kind{tag: memoryBytes}.set(&limit.Bytes, text))
}

func showMemory(field any) string {
	limit := field.(*worker.MemoryLimit)
	if limit.Percent > 0 {
		return strconv.Itoa(limit.Percent) + "%"
	}
	return showSize(limit.Bytes)
}

// readMessage reads base64 (RFC 4648 4). Blanks and line breaks between the characters are left
// out, as YAML blocks have them. A fault does not repeat the text: it may hold secrets.
func readMessage(text string) ([]byte, error) {
	message, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(text), ""))
	return message, wrong("", flaw{err != nil, "is not base64"}, flaw{len(message) > maxMessage, fmt.Sprintf("has %d bytes", len(message))})
}

func showMessage(field any) string { return base64.StdEncoding.EncodeToString(*field.(*[]byte)) }
