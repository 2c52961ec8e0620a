package config

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// decimal is the kind of *float64 fields.
type decimal struct {
	min, max float64
	zero     string // what zero means, if that needs saying; it is then allowed, whatever min is
}

func (k decimal) set(field any, text string) error {
	n, err := strconv.ParseFloat(text, 64)
	if math.IsInf(n, 0) && err != nil { // too large for a float64
		return fmt.Errorf("%s is out of range", quote(text))
	}
	if err != nil || math.IsNaN(n) {
		return fmt.Errorf("%s is not a number", quote(text))
	}
	if (n < k.min || n > k.max) && (n != 0 || k.zero == "") {
		return fmt.Errorf("%s is out of range", showDecimal(n))
	}
	*field.(*float64) = math.Abs(n) // what is in range is negative only as -0
	return nil
}

func (k decimal) show(field any) string { return showDecimal(*field.(*float64)) }

func (k decimal) allowed() string {
	text := showDecimal(k.min) + " to " + showDecimal(k.max)
	if k.zero != "" {
		text += ", or 0: " + k.zero
	}
	return text
}

func showDecimal(n float64) string {
	if math.Abs(n) >= 1e15 { // far out of every range; its digits tell nothing
		return strconv.FormatFloat(n, 'g', -1, 64)
	}
	return strconv.FormatFloat(n, 'f', -1, 64)
}

// numberOr is the kind of *int fields that may also hold a word; the field is
// then 0, which number must not allow.
type numberOr struct {
	word   string
	number wholeNumber
}

func (k numberOr) set(field any, text string) error {
	if text == k.word {
		*field.(*int) = 0
		return nil
	}
	return k.number.set(field, text)
}

func (k numberOr) show(field any) string {
	if *field.(*int) == 0 {
		return k.word
	}
	return k.number.show(field)
}

func (k numberOr) allowed() string { return k.number.allowed() + ", or " + k.word }

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
		return 0, fmt.Errorf("%d%% is out of range", n)
	}
	return n, nil
}
