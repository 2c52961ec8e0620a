package config

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"strings"
)

// firstAutoSlots is where slots that adapt begin: few enough for any worker,
// and so many more can be had within a second.
const firstAutoSlots = 5

// amount is the kind of *Amount fields: a number, or two with a dash between them.
type amount struct {
	number reflect.StructTag
	auto   string // the bounds that auto stands for; "": it needs some
	first  int    // where one begins that adapts; 0: at the number of before
}

func (k amount) plain() plain { return plain{k.number} }

func (k amount) set(field any, text string) error {
	a := field.(*Amount)
	bounds, isAuto := strings.CutPrefix(text, automatic)
	if bounds = strings.TrimSpace(bounds); isAuto && bounds == "" {
		bounds = k.auto
	}
	low, high, two := strings.Cut(bounds, "-")
	switch {
	case isAuto && !two:
		return errors.New("auto needs bounds, as in 2-16: the most are what the machine has memory for")
	case !two || low == "":
		if err := k.plain().set(&a.N, text); err != nil {
			return err
		}
		a.Min, a.Max = 0, 0
		return nil
	}
	least, most := 0, 0
	if err := cmp.Or(k.plain().set(&least, strings.TrimSpace(low)), k.plain().set(&most, strings.TrimSpace(high))); err != nil {
		return err
	}
	if least > most {
		return fmt.Errorf("%d is above %d", least, most)
	}
	a.Min, a.Max = least, most
	if k.first > 0 {
		a.N = k.first
	}
	return nil
}

func (k amount) show(field any) string {
	if a := field.(*Amount); a.Adapts() {
		return fmt.Sprintf("%d-%d", a.Min, a.Max)
	}
	return k.plain().show(&field.(*Amount).N)
}

func (k amount) allowed() string {
	text := k.plain().allowed() + ", or two of them as in 2-16"
	if k.auto != "" {
		text += ", or auto: " + k.auto
	}
	return text
}
