package config

import (
	"fmt"
	"strconv"
	"strings"
)

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
	switch {
	case s == 0:
		return "0"
	case s%GiB == 0:
		return fmt.Sprintf("%dGiB", s/GiB)
	case s%MiB == 0:
		return fmt.Sprintf("%dMiB", s/MiB)
	case s%KiB == 0:
		return fmt.Sprintf("%dKiB", s/KiB)
	}
	return strconv.FormatInt(int64(s), 10)
}

// byteSize is the kind of *Size fields: a whole number, plain or with KiB, MiB
// or GiB.
type byteSize struct {
	min, max Size
	zero     string // what zero means, if that needs saying; it is then allowed, whatever min is
}

func (k byteSize) set(field any, text string) error {
	digits, unit := text, Size(1)
	for suffix, bytes := range map[string]Size{"KiB": KiB, "MiB": MiB, "GiB": GiB} {
		if number, found := strings.CutSuffix(text, suffix); found {
			digits, unit = strings.TrimSpace(number), bytes
		}
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil {
		return fmt.Errorf("%s is not a size in bytes, KiB, MiB or GiB", quote(text))
	}
	// Comparing before multiplying keeps the product in range.
	if n < 0 || n > int64(k.max/unit) || Size(n)*unit < k.min && (n != 0 || k.zero == "") {
		return fmt.Errorf("%s is out of range", text)
	}
	*field.(*Size) = Size(n) * unit
	return nil
}

func (k byteSize) show(field any) string { return field.(*Size).String() }

func (k byteSize) allowed() string {
	text := k.min.String() + " to " + k.max.String()
	if k.zero != "" {
		text += ", or 0: " + k.zero
	}
	return text
}
