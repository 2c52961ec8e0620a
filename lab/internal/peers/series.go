package peers

import (
	"bytes"
	"encoding/json"
	"math"
	"reflect"
	"strconv"
)

// series is how the result file keeps the runs of one proxy on one workload in
// one phase: what they share once, every figure as a list over the rounds.
type series struct {
	Peer     string `json:"peer"`
	Workload string `json:"workload"`
	Phase    phase  `json:"phase"`
	Command  string `json:"command,omitempty"`   // of the first round; others differ in ports
	LoadArgs string `json:"load_args,omitempty"` // of the first round; others differ in the rate, which is a figure

	// Rounds has a value for each run under each name; null is what a run did
	// not have. "repeat" numbers the rounds.
	Rounds map[string][]json.RawMessage `json:"rounds"`
}

// seriesOf groups runs by proxy, workload and phase, each group in the order
// of its first run.
func seriesOf(runs []run) (all []*series, err error) {
	type key struct {
		peer, workload string
		phase
	}
	index := map[key]*series{}
	for _, r := range runs {
		k := key{r.Peer, r.Workload, r.Phase}
		s := index[k]
		if s == nil {
			s = &series{Peer: r.Peer, Workload: r.Workload, Phase: r.Phase, Rounds: map[string][]json.RawMessage{}}
			index[k], all = s, append(all, s)
		}
		if err := s.add(r); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// add appends the figures of a run to those of the runs before.
func (s *series) add(r run) error {
	before := len(s.Rounds["repeat"]) // which every run has
	if s.Command == "" {              // a run that failed early has none
		s.Command = r.Command
	}
	if s.LoadArgs == "" {
		s.LoadArgs = r.LoadArgs
	}
	b, err := json.Marshal(r)
	if err != nil {
		return err
	}
	var figures map[string]json.RawMessage
	if err := json.Unmarshal(b, &figures); err != nil {
		return err
	}
	for _, setting := range []string{"conns", "streams", "size", "answers"} { // LoadArgs has them
		delete(figures, setting)
	}
	for name, value := range figures {
		for len(s.Rounds[name]) < before {
			s.Rounds[name] = append(s.Rounds[name], json.RawMessage("null"))
		}
		s.Rounds[name] = append(s.Rounds[name], value)
	}
	for name, values := range s.Rounds {
		if len(values) == before {
			s.Rounds[name] = append(values, json.RawMessage("null"))
		}
	}
	return nil
}

// digits are kept of every number that is not whole: far more than two runs
// have in common.
const digits = 6

// round shortens all float64 that v holds, v being addressable.
func round(v reflect.Value) {
	switch v.Kind() {
	case reflect.Float64:
		if x := v.Float(); x != math.Trunc(x) {
			short, _ := strconv.ParseFloat(strconv.FormatFloat(x, 'g', digits, 64), 64) // cannot fail
			v.SetFloat(short)
		}
	case reflect.Pointer:
		if !v.IsNil() {
			round(v.Elem())
		}
	case reflect.Slice:
		for i := range v.Len() {
			round(v.Index(i))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() || f.Anonymous {
				round(v.Field(i))
			}
		}
	default: // no other kind in a result holds a float64
	}
}

// breakLines begins a line for each member of compact JSON and each member of
// these: long lists stay short, and a difference is seen.
func breakLines(compact []byte) []byte {
	var out bytes.Buffer
	depth, quoted := 0, false
	for i := 0; i < len(compact); i++ {
		c := compact[i]
		if (c == '}' || c == ']') && !quoted {
			if depth <= 2 {
				out.WriteByte('\n')
			}
			depth--
		}
		out.WriteByte(c)
		switch {
		case c == '"':
			quoted = !quoted
		case c == '\\': // the next one is no quote
			i++
			out.WriteByte(compact[i])
		case quoted:
		case c == '{' || c == '[':
			if depth++; depth <= 2 {
				out.WriteByte('\n')
			}
		case c == ',' && depth <= 2:
			out.WriteByte('\n')
		}
	}
	return out.Bytes()
}
