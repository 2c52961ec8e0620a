package lab

import (
	"context"
	"math"
	"testing"

	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/lab/internal/caller"
	"github.com/cabrank/cabrank/lab/internal/traffic"
)

// fixed is a client whose calls all end with one code.
type fixed struct {
	caller.Caller

	code   uint32
	closed *int
}

func (f fixed) Call(context.Context, traffic.Call) traffic.Answer {
	return traffic.Answer{Code: f.code}
}
func (f fixed) Opened() int64 { return 2 }
func (f fixed) Close()        { *f.closed++ }

// Methods have their shares of the calls, the same ones at the second time.
func TestMixed(t *testing.T) {
	closed := 0
	m := &mixed{seed: 3}
	m.add("a.B/C", 0.7, fixed{closed: &closed})
	m.add("a.B/D", 0.2, fixed{code: 5, closed: &closed})
	m.add("a.B/E", 0.1, fixed{code: 8, closed: &closed})
	const calls = 50_000
	var codes [2][]uint32
	for again := range codes {
		for number := range uint64(calls) {
			codes[again] = append(codes[again], m.Call(t.Context(), traffic.Call{Number: number}).Code)
		}
	}
	for i := range codes[0] {
		if codes[0][i] != codes[1][i] {
			t.Fatalf("call %d is for another method at the second time", i)
		}
	}
	want := map[string]float64{"a.B/C, answered": 0.7, "a.B/D, failed": 0.2, "a.B/E, failed": 0.1}
	for _, c := range m.Counts() {
		if share := float64(c.N) / (2 * calls); math.Abs(share-want[c.Name]) > 0.01 {
			t.Errorf("%s: %.3f of the calls, want %.1f", c.Name, share, want[c.Name])
		}
	}
	if m.Opened() != 6 {
		t.Errorf("%d connections", m.Opened())
	}
	if m.Close(); closed != 3 {
		t.Errorf("%d closed", closed)
	}
}

func TestParseAlso(t *testing.T) {
	a, err := ParseAlso(`  2.5%  demo.Jobs/List {"page": 1} `)
	if err != nil || a.Share != 0.025 || a.Method != "demo.Jobs/List" || string(a.Data.Text) != `{"page": 1}` {
		t.Errorf("%+v, %v", a, err)
	}
	for _, text := range []string{"", "20%", "20% a.B/C", "20 a.B/C {}", "100% a.B/C {}", "0% a.B/C {}", "x% a.B/C {}"} {
		_, err := ParseAlso(text)
		testkit.Refused(t, err, "want a share, a method")
	}
}
