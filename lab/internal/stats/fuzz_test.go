package stats_test

import (
	"encoding/binary"
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/lab/internal/stats"
)

// Whatever was measured, the answer is one that a report can print.
func FuzzJudge(f *testing.F) {
	add := func(margin float64, pairs []stats.Pair) {
		var data []byte
		for _, p := range pairs {
			data = binary.LittleEndian.AppendUint64(data, math.Float64bits(p.Base))
			data = binary.LittleEndian.AppendUint64(data, math.Float64bits(p.Other))
		}
		f.Add(margin, data)
	}
	add(0, nil)
	add(0.05, around(1, 0.02))
	add(0.5, with(around(0.5, 0.1), stats.Pair{Base: math.Inf(1), Other: 1}, stats.Pair{Other: stats.Unknown()}))
	add(0, ratios(1e-300, 1e300, 5e-324, 1, 1, 1, 1, 1, 1, math.MaxFloat64/100))
	f.Fuzz(func(t *testing.T, margin float64, data []byte) {
		var pairs []stats.Pair
		for ; len(data) >= 16; data = data[16:] {
			pairs = append(pairs, stats.Pair{
				Base:  math.Float64frombits(binary.LittleEndian.Uint64(data)),
				Other: math.Float64frombits(binary.LittleEndian.Uint64(data[8:])),
			})
		}
		j, err := stats.Judge(true, stats.Figure{Name: "p99", Pairs: pairs, Margin: margin})
		if err != nil {
			return
		}
		c := j[0]
		testkit.Want(t, c.Ratio.Low >= 0 && c.Ratio.Low <= c.Ratio.High, "the ratio is from %v to %v", c.Ratio.Low, c.Ratio.High)
		testkit.Want(t, c.P >= 0 && c.P <= 1 && c.PEqual >= 0 && c.PEqual <= 1, "p is %v and %v", c.P, c.PEqual)
		words := c.Words()
		testkit.Want(t, !strings.Contains(words, "NaN") && !strings.Contains(words, "Inf"), "in words: %s", words)
		_, err = json.Marshal(j)
		testkit.Want(t, err == nil, "%v", err)
	})
}
