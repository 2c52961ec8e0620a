package traffic

import (
	"cmp"
	"sort"
)

const (
	// mostTexts is how many texts of failures are told apart. Texts may hold
	// addresses and numbers, so that each may be new.
	mostTexts = 20
	// mostText is how many bytes of a text are kept.
	mostText = 200
	// otherTexts stands for those above mostTexts.
	otherTexts = "(other messages)"
)

// Failure is one way to fail. The sum of all is the number of failed calls.
type Failure struct {
	Code    uint32 `json:"code"`
	Message string `json:"message"`
	Calls   int64  `json:"calls"`
}

// failures counts by code and text.
type failures map[Failure]int64 // keys without Calls

func (f failures) add(code uint32, message string, calls int64) {
	if len(message) > mostText {
		message = message[:mostText]
	}
	key := Failure{Code: code, Message: message}
	if _, known := f[key]; !known && len(f) >= mostTexts {
		key.Message = otherTexts
	}
	f[key] += calls
}

// list is sorted: the most frequent first.
func (f failures) list() []Failure {
	all := []Failure{}
	for key, calls := range f {
		key.Calls = calls
		all = append(all, key)
	}
	sort.Slice(all, func(i, j int) bool {
		a, b := &all[i], &all[j]
		return cmp.Or(cmp.Compare(b.Calls, a.Calls), cmp.Compare(a.Code, b.Code), cmp.Compare(a.Message, b.Message)) < 0
	})
	return all
}

// collect is the reverse of list.
func collect(all []Failure) failures {
	f := failures{}
	for _, one := range all {
		f.add(one.Code, one.Message, one.Calls)
	}
	return f
}
