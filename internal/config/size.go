package config

import (
	"fmt"
	"strconv"
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
	for i, name := range []string{"GiB", "MiB", "KiB"} {
		if unit := []Size{GiB, MiB, KiB}[i]; s != 0 && s%unit == 0 {
			return fmt.Sprintf("%d%s", s/unit, name)
		}
	}
	return strconv.FormatInt(int64(s), 10)
}
