package strictyaml

import (
	"encoding"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// isText reports whether a text is enough for v.
func isText(v reflect.Value) bool {
	_, own := reflect.TypeAssert[encoding.TextUnmarshaler](v.Addr())
	return own || v.CanInt() || v.CanUint() || v.CanFloat() || v.Kind() == reflect.String || v.Kind() == reflect.Bool
}

// Set stores a text where into points, by the tags of a field, or says what is wrong with it.
func Set(into any, tag reflect.StructTag, text string) (what string) {
	v := reflect.ValueOf(into).Elem()
	own, has := into.(encoding.TextUnmarshaler)
	switch words := strings.Split(tag.Get("oneof"), "|"); {
	case has:
		if err := own.UnmarshalText([]byte(text)); err != nil {
			return err.Error()
		}
	case v.Kind() == reflect.String:
		text = strings.TrimRight(text, "\n") // of a block
		if words[0] != "" && !slices.Contains(words, text) {
			return Quote(text) + " is unknown" + DidYouMean("", text, words)
		}
		v.SetString(text)
	case v.Kind() == reflect.Bool:
		at := slices.Index([]string{"false", "no", "off", "f", "0", "true", "yes", "on", "t", "1"}, strings.ToLower(text))
		if at < 0 {
			return Quote(text) + " is neither true nor false"
		}
		v.SetBool(at >= 5)
	default:
		return setNumber(v, tag, text)
	}
	return ""
}

// setNumber goes by float64: whole numbers up to 2^53, times up to 104 days.
func setNumber(v reflect.Value, tag reflect.StructTag, text string) string {
	least, most := 0.0, float64(1<<53)
	if low, high, found := strings.Cut(tag.Get("range"), ".."); found {
		least, _ = number(v, tag, low)
		most, _ = number(v, tag, high)
	}
	n, what := number(v, tag, text)
	for pair := range strings.SplitSeq(tag.Get("word"), "|") {
		if word, stands, found := strings.Cut(pair, "="); found && text == word {
			n, what = number(v, tag, stands)
			least, most = n, n
		}
	}
	switch {
	case what != "":
		return Quote(text) + what
	case (n < least || n > most) && (n != 0 || tag.Get("zero") == ""):
		return Quote(text) + " is out of range"
	}
	v.Set(reflect.ValueOf(n).Convert(v.Type()))
	return ""
}

// number reads one in its unit, or says what is wrong with it.
func number(v reflect.Value, tag reflect.StructTag, text string) (n float64, what string) {
	digits, unit := strings.TrimRight(text, "%/BGKMihms"), tag.Get("unit")
	factor, known := map[string]float64{ // by unit, and what may stand behind a number
		"": 1, "%%": 0.01, "B": 1, "BKiB": 1 << 10, "BMiB": 1 << 20, "BGiB": 1 << 30, "/s": 1, "/s/s": 1, "/s/m": 1.0 / 60, "/s/h": 1.0 / 3600,
	}[unit+text[len(digits):]]
	n, err := strconv.ParseFloat(strings.TrimSpace(digits), 64)
	d, wrong := time.ParseDuration(text)
	switch isTime := v.Type() == reflect.TypeFor[time.Duration](); {
	case isTime && wrong == nil:
		return float64(d), ""
	case isTime && err == nil && digits == text:
		return 0, " has no unit, as in " + digits + "s"
	case isTime:
		return 0, " is not a time such as 300ms, 10s or 2m"
	case unit == "B" && (err != nil && !math.IsInf(n, 0) || !known):
		return 0, " is not a size in bytes, KiB, MiB or GiB"
	case err != nil && !math.IsInf(n, 0), math.IsNaN(n), unit == "" && digits != text:
		return 0, " is not a number"
	case !known && unit == "%":
		return 0, " is not a share such as 5%"
	case !known:
		return 0, " has another unit"
	case !v.CanFloat() && n*factor != math.Trunc(n*factor):
		return 0, " is not a whole number"
	}
	return n*factor + 0, "" // + 0: not -0
}

// allowed says what fits; "" if the fault itself does.
func allowed(v reflect.Value, tag reflect.StructTag) (text string) {
	_, own := reflect.TypeAssert[encoding.TextUnmarshaler](v.Addr())
	switch all, kind := fields(v.Type()), v.Kind(); {
	case own:
		return ""
	case alone(all) >= 0:
		f := all[alone(all)]
		return allowed(v.FieldByIndex(f.index), f.tag) + "; or keys: " + strings.Join(names(all), ", ")
	case all != nil:
		return "keys: " + strings.Join(names(all), ", ")
	case kind == reflect.Slice, kind == reflect.Map, kind == reflect.Pointer:
		return allowed(reflect.New(v.Type().Elem()).Elem(), tag)
	case tag.Get("oneof") != "":
		return strings.ReplaceAll(tag.Get("oneof"), "|", ", ")
	case kind == reflect.Bool:
		return "true or false"
	case kind == reflect.String:
		return "text"
	case tag.Get("range") == "" && (v.CanInt() || v.CanUint() || v.CanFloat()):
		text = "a number of 0 or more"
	}
	return text + Range(tag)
}

// Range says which numbers the tags of a field allow.
func Range(tag reflect.StructTag) (text string) {
	if least, most, ranged := strings.Cut(tag.Get("range"), ".."); ranged {
		text = least + " to " + most
	}
	if zero := tag.Get("zero"); zero != "" {
		text += ", or 0: " + zero
	}
	words := ""
	for pair := range strings.SplitSeq(tag.Get("word"), "|") {
		if word, _, found := strings.Cut(pair, "="); found {
			words = strings.ReplaceAll(words, "or ", "") + ", or " + word
		}
	}
	return text + words
}
