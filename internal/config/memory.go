package config

import (
	"fmt"
	"strconv"
	"strings"
)

// memoryLimit is the kind of *MemoryLimit fields: bytes, or a share.
type memoryLimit struct{}

func (memoryLimit) bytes() plain { return plain{`range:"1MiB..1024GiB" unit:"B" zero:"never"`} }

func (k memoryLimit) set(field any, text string) error {
	limit := MemoryLimit{}
	share, err := strconv.ParseFloat(text, 64)
	if strings.HasSuffix(text, "%") || err == nil && share > 0 && share < 1 {
		limit.Percent, err = wholePercent(text)
	} else {
		err = k.bytes().set(&limit.Bytes, text)
	}
	if err == nil {
		*field.(*MemoryLimit) = limit
	}
	return err
}

func (k memoryLimit) show(field any) string {
	if limit := field.(*MemoryLimit); limit.Percent > 0 {
		return strconv.Itoa(limit.Percent) + "%"
	}
	size := Size(field.(*MemoryLimit).Bytes)
	return k.bytes().show(&size)
}

func (k memoryLimit) allowed() string {
	return "1% to 100% of the container's limit, " + k.bytes().allowed()
}

// wholePercent reads a share that is written as "90%".
func wholePercent(text string) (int, error) {
	digits, signed := strings.CutSuffix(text, "%")
	n, err := strconv.Atoi(digits)
	if share, parse := strconv.ParseFloat(text, 64); err != nil && parse == nil && share > 0 && share < 1 {
		return 0, fmt.Errorf("%s is not a share in percent; did you mean %.0f%%?", quote(text), 100*share)
	}
	switch {
	case err != nil:
		return 0, fmt.Errorf("%s is not a share in whole percent", quote(text))
	case !signed:
		return 0, fmt.Errorf("%s has no sign; did you mean %d%%?", quote(text), n)
	case n < 1 || n > 100:
		return 0, fmt.Errorf("%s is out of range", quote(text))
	}
	return n, nil
}
