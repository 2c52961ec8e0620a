package scenario

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cabrank/cabrank/internal/spelling"
)

// values are numbers with names, which a file has for what people change most. They
// stand as {name} in what is asked for and in how long it takes.
type values map[string]string

// values reads the numbers, and puts those of set in their place.
func (t *table) values(set map[string]string) values {
	all := values{}
	if node := t.take("values"); node != nil {
		inner := t.table(node, "values")
		for _, name := range inner.keys {
			text, _ := inner.scalar(name)
			all[name] = text
			if !isNumber(text) || !oneWord.MatchString(name) {
				inner.wrong(name, "%.40q: want a word, and a whole number of up to 9 digits", text)
			}
		}
	}
	for name, text := range set {
		if _, known := all[name]; !known {
			t.fault(0, "", "%s", unknownValue(name, slices.Sorted(maps.Keys(all))))
		} else if !isNumber(text) {
			t.fault(0, "", "%s=%.40s: want a whole number of up to 9 digits", name, text)
		}
		all[name] = text
	}
	return all
}

// isNumber reports whether a text is a whole number of up to 9 digits.
func isNumber(text string) bool {
	return text != "" && len(text) <= 9 && strings.Trim(text, "0123456789") == ""
}

func unknownValue(name string, all []string) string {
	if meant := spelling.Nearest(name, all); meant != "" {
		return fmt.Sprintf("there is no value %.40q to set; did you mean %s?", name, meant)
	}
	if len(all) == 0 {
		return fmt.Sprintf("there is no value %.40q to set: it has none", name)
	}
	return fmt.Sprintf("there is no value %.40q to set; there are: %s", name, strings.Join(all, ", "))
}

// fill puts the values into a text.
func (v values) fill(text string) string {
	for name, value := range v {
		text = strings.ReplaceAll(text, "{"+name+"}", value)
	}
	return text
}

// product reads a time, or how often it is taken: 25ms, or 200x25ms.
func product(text string) (time.Duration, error) {
	times, each, found := strings.Cut(text, "x")
	n := 1
	if found {
		var err error
		if n, err = strconv.Atoi(times); err != nil || n < 0 {
			return 0, fmt.Errorf("%.40q: want a time such as 10s, or 200x25ms", text)
		}
	} else {
		each = text
	}
	d, err := time.ParseDuration(each)
	if err != nil || d < 0 || d > longest || n > 0 && d > 365*longest/time.Duration(n) {
		return 0, fmt.Errorf("%.40q: want a time such as 10s, or 200x25ms", text)
	}
	return time.Duration(n) * d, nil
}
