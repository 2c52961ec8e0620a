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
