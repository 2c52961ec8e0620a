package config

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/cabrank/cabrank/internal/relay"
)

// firstAutoSlots is where slots that adapt begin: few enough for any worker,
// and so many more can be had within a second.
const firstAutoSlots = 5

// amount is the kind of *Amount fields: a number of those that the tag allows, or two with
// a dash between them. auto are the bounds for which the word stands, "" if it needs some.
// What adapts begins at first, or if that is 0 at the number of before.
func amount(tag reflect.StructTag, auto string, first int) value[Amount] {
	number := plain{tag}
	legal := number.allowed() + ", or two of them as in 2-16"
	if auto != "" {
		legal += ", or auto: " + auto
	}
	return value[Amount]{
		read: func(a *Amount, text string) error {
			bounds, isAuto := strings.CutPrefix(text, automatic)
			if bounds = strings.TrimSpace(bounds); isAuto && bounds == "" {
				bounds = auto
			}
			low, high, two := strings.Cut(bounds, "-")
			switch {
			case isAuto && !two:
				return errors.New("auto needs bounds, as in 2-16: the most are what the machine has memory for")
			case !two || low == "":
				a.Min, a.Max = 0, 0
				return number.set(&a.N, text)
			case first > 0:
				a.N = first
			}
			err := cmp.Or(number.set(&a.Min, strings.TrimSpace(low)), number.set(&a.Max, strings.TrimSpace(high)))
			if err == nil && a.Min > a.Max {
				return fmt.Errorf("%d is above %d", a.Min, a.Max)
			}
			return err
		},
		write: func(a Amount) string {
			if a.Adapts() {
				return fmt.Sprintf("%d-%d", a.Min, a.Max)
			}
			return strconv.Itoa(a.N)
		},
		legal: legal,
	}
}

// memoryLimit is the kind of *MemoryLimit fields: bytes, or a share.
func memoryLimit() value[MemoryLimit] {
	bytes := plain{`range:"1MiB..1024GiB" unit:"B" zero:"never"`}
	return value[MemoryLimit]{
		read: func(limit *MemoryLimit, text string) (err error) {
			*limit = MemoryLimit{}
			if share, no := strconv.ParseFloat(text, 64); strings.HasSuffix(text, "%") || no == nil && share > 0 && share < 1 {
				limit.Percent, err = wholePercent(text)
				return err
			}
			return bytes.set(&limit.Bytes, text)
		},
		write: func(limit MemoryLimit) string {
			if limit.Percent > 0 {
				return strconv.Itoa(limit.Percent) + "%"
			}
			return Size(limit.Bytes).String()
		},
		legal: "1% to 100% of the container's limit, " + bytes.allowed(),
	}
}

// wholePercent reads a share that is written as "90%".
func wholePercent(text string) (int, error) {
	digits, _ := strings.CutSuffix(text, "%")
	n, err := strconv.Atoi(digits)
	if share, parse := strconv.ParseFloat(text, 64); parse == nil { // without the sign
		return 0, fmt.Errorf("%s is not a share in percent; did you mean %.0f%%?", quote(text), 100*share)
	}
	switch {
	case err != nil:
		return 0, fmt.Errorf("%s is not a share in whole percent", quote(text))
	case n < 1 || n > 100:
		return 0, fmt.Errorf("%s is out of range", quote(text))
	}
	return n, nil
}

// hedgeDelay is the kind of HedgeAfter of a MethodRule.
func hedgeDelay() value[time.Duration] {
	delay := plain{`range:"1ms..1h"`}
	return value[time.Duration]{
		read: func(into *time.Duration, text string) error {
			switch text {
			case automatic:
				*into = relay.HedgeAuto
			case none:
				*into = 0
			default:
				return delay.set(into, text)
			}
			return nil
		},
		write: showHedge,
		legal: delay.allowed() + ", " + automatic + ", or " + none,
	}
}

func showHedge(after time.Duration) string {
	if after == relay.HedgeAuto {
		return automatic
	}
	if after == 0 {
		return none
	}
	return showDuration(after)
}
