package load

import (
	"sync"
	"time"

	"github.com/cabrank/cabrank/lab/internal/latency"
)

// kept is what a run counts of its calls. All clients share it, and bring what they have
// after each batch: histograms of their own would take half a MiB for each connection.
// The zero value is empty, and takes none.
type kept struct {
	mu        sync.Mutex
	latencies *latency.Histogram // nil until there is one
	lags      *latency.Histogram // how late calls of an open loop were sent; nil until there is one
}

func (k *kept) addLatencies(d []time.Duration) { k.add(&k.latencies, d) }
func (k *kept) addLags(d []time.Duration)      { k.add(&k.lags, d) }

func (k *kept) add(to **latency.Histogram, durations []time.Duration) {
	if len(durations) == 0 {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if *to == nil {
		*to = latency.New()
	}
	for _, d := range durations {
		(*to).Record(d)
	}
}
