package scrape

import (
	"math"
	"time"

	dto "github.com/prometheus/client_model/go"
	"google.golang.org/protobuf/types/known/timestamppb"
)

func (v *value) hasExemplar() bool { return v.exemplar != nil || v.example != nil }

// exemplarOf returns the exemplar of a value, nil if it has none, or one that cannot be
// read: the value counts without it.
func (v *value) exemplarOf() *dto.Exemplar {
	switch {
	case v == nil:
		return nil
	case v.exemplar == nil:
		return v.example
	}
	closing := closingBrace(v.exemplar)
	if closing < 0 {
		return nil
	}
	labels, err := parseLabels(v.exemplar[1:closing])
	if err != nil {
		return nil
	}
	number, rest := word(trimmed(v.exemplar[closing+1:]))
	at, err := parseFloat(number)
	if err != nil {
		return nil
	}
	out := &dto.Exemplar{Label: pairs(labels), Value: new(at)}
	if seconds, err := parseFloat(rest); err == nil && math.Abs(seconds) < 1<<40 {
		out.Timestamp = timestamppb.New(time.UnixMicro(int64(seconds * 1e6)))
	}
	return out
}

func trimmed(text []byte) []byte {
	for len(text) > 0 && isBlank(text[0]) {
		text = text[1:]
	}
	return text
}
