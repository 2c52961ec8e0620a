package stats

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cabrank/cabrank/internal/grpcwire"
	"github.com/cabrank/cabrank/internal/rank"
)

// A bounded number of methods have a name, and half as many have it from an answer that
// proves little.
func TestMethodsAreBounded(t *testing.T) {
	table := NewMethods(rank.New(rank.Options{}), 2, nil)
	learn := func(i int, proven bool) bool { return table.Learn(fmt.Appendf(nil, "/s/%d", i), proven) != nil }
	for i := range MaxUnproven + 1 {
		if learn(i, false) != (i < MaxUnproven) {
			t.Errorf("method %d by an answer that is not OK", i)
		}
	}
	for i := MaxUnproven; i <= MaxMethods; i++ {
		if learn(i, true) != (i < MaxMethods) {
			t.Errorf("method %d by an answer that is OK", i)
		}
	}
	if !learn(7, false) || len(table.All()) != 1+MaxMethods {
		t.Errorf("%d methods", len(table.All()))
	}
	for _, path := range []string{"/a b", "/\xff", "/" + string(make([]byte, maxName))} {
		if table.Learn([]byte(path), true) != nil {
			t.Errorf("%q has a name", path)
		}
	}
}

// The counts of all shards come together, of named methods and of others.
func TestCountsOfShards(t *testing.T) {
	table := NewMethods(rank.New(rank.Options{}), 2, nil)
	named := table.Learn([]byte("/s/m"), true)
	named.Count(0, &Ended{Took: ms, HadSlot: true})
	named.Count(1, &Ended{Code: grpcwire.Internal, Deadline: true})
	table.OrOther(nil).Count(1, &Ended{HTTP: 404})
	table.OrOther(nil).Count(1, &Ended{HTTP: 999})
	var got []string
	for _, m := range table.All() {
		s := m.Stats()
		m.AddTo(&s, 0)
		m.AddTo(&s, 1)
		got = append(got, fmt.Sprintln(s.Method, s.Codes, s.Seconds.Counts[0], s.Seconds.Sum, s.Work.Counts[0], s.NoDeadline))
	}
	if want := "other map[404:1 other:1] 2 0 0 2\n/s/m map[INTERNAL:1 OK:1] 1 0.001 1 1\n"; strings.Join(got, "") != want {
		t.Errorf("got %v, want %s", got, want)
	}
}
