package broker_test

import (
	"strings"
	"testing"

	"github.com/cabrank/cabrank/internal/broker"
)

func BenchmarkMatches(b *testing.B) {
	channel := strings.Repeat("n", 50)
	globs := make([]string, 1000)
	for i := range globs {
		begin := []byte(channel[:10+i/40])
		begin[i%10] = '?'
		globs[i] = string(begin) + strings.Repeat("?", i/10%4) + "*"
	}
	for b.Loop() {
		for _, g := range globs {
			if !broker.Matches(g, channel) {
				b.Fatal(g)
			}
		}
	}
}
