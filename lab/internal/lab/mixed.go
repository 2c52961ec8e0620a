package lab

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/cabrank/cabrank/lab/internal/caller"
	"github.com/cabrank/cabrank/lab/internal/method"
	"github.com/cabrank/cabrank/lab/internal/traffic"
)

// Also is a further method that a load calls.
type Also struct {
	caller.Calls

	Share float64 // of all calls, above 0 and below 1
}

// ParseAlso reads a share, a method and its requests: 20% demo.Jobs/List {"page": 1}.
//
// Errors: one line that says what is wanted.
func ParseAlso(text string) (a Also, err error) {
	share, rest, _ := strings.Cut(strings.TrimSpace(text), " ")
	name, data, _ := strings.Cut(strings.TrimSpace(rest), " ")
	digits, isPercent := strings.CutSuffix(share, "%")
	percent, err := strconv.ParseFloat(digits, 64)
	data = strings.TrimSpace(data)
	if !isPercent || err != nil || !(percent > 0 && percent < 100) || name == "" || data == "" {
		return a, fmt.Errorf("--also %.80q: want a share, a method and its requests, such as '20%% demo.Jobs/List {}'", text)
	}
	return Also{Share: percent / 100, Calls: caller.Calls{Method: name, Data: method.Data{Name: "--also", Text: []byte(data)}}}, nil
}

// choice keeps the draw of the method apart from those of its request.
const choice = 0x6d69786564

// mixed calls several methods. Which one a call is for depends on its number and the seed
// alone, as its request does.
type mixed struct {
	caller.Caller // of the first method, which has what the others leave

	seed uint64
	all  []*part
}

type part struct {
	caller.Caller

	name             string
	upTo             float64 // the sum of the shares up to its own
	answered, failed atomic.Int64
}

func (m *mixed) add(path string, share float64, client caller.Caller) {
	p := &part{Caller: client, name: strings.TrimPrefix(path, "/"), upTo: share}
	if len(m.all) == 0 {
		m.Caller = client
	} else {
		p.upTo += m.all[len(m.all)-1].upTo
	}
	m.all = append(m.all, p)
}

// Call implements traffic.Client.
func (m *mixed) Call(ctx context.Context, call traffic.Call) traffic.Answer {
	at := rand.New(rand.NewPCG(m.seed^choice, call.Number)).Float64()
	p := m.all[0]
	for _, next := range m.all[1:] {
		if at >= p.upTo {
			p = next
		}
	}
	a := p.Call(ctx, call)
	if a.Code == 0 {
		p.answered.Add(1)
	} else {
		p.failed.Add(1)
	}
	return a
}

// Counts implements traffic.Counter.
func (m *mixed) Counts() (all []traffic.Count) {
	for _, p := range m.all {
		all = append(all, traffic.Count{Name: p.name + ", answered", N: p.answered.Load()}, traffic.Count{Name: p.name + ", failed", N: p.failed.Load()})
	}
	return all
}

// Opened implements traffic.Dialer.
func (m *mixed) Opened() (n int64) {
	for _, p := range m.all {
		n += p.Opened()
	}
	return n
}

func (m *mixed) Close() {
	for _, p := range m.all {
		p.Close()
	}
}
