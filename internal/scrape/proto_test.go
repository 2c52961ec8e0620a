package scrape

import (
	"bytes"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"google.golang.org/protobuf/encoding/protodelim"
	"google.golang.org/protobuf/proto"

	"github.com/cabrank/cabrank/internal/testkit"
)

// protobufPage is what a registry shows in protobuf.
func protobufPage(t testing.TB, collectors ...prometheus.Collector) []byte {
	t.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors...)
	families, err := registry.Gather()
	testkit.Must(t, err)
	var page bytes.Buffer
	for _, f := range families {
		_, err = protodelim.MarshalTo(&page, f)
		testkit.Must(t, err)
	}
	return page.Bytes()
}

func TestProtobuf(t *testing.T) {
	s := NewStore(Options{})
	for n, worker := range []string{"w1", "w2"} {
		c := prometheus.NewCounter(prometheus.CounterOpts{Name: "c_total", Help: "How many."})
		c.(prometheus.ExemplarAdder).AddWithExemplar(float64(n+1), prometheus.Labels{"trace": worker})
		h := prometheus.NewHistogram(prometheus.HistogramOpts{Name: "h", Help: "H.", Buckets: []float64{1, 2}})
		h.Observe(0.5 + float64(n))
		q := prometheus.NewSummary(prometheus.SummaryOpts{Name: "q", Help: "Q.", Objectives: map[float64]float64{0.5: 0.1}})
		q.Observe(4)
		g := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "g", Help: "G."}, []string{"a", "empty"})
		g.WithLabelValues("x", "").Set(2)
		p := s.Join(worker)
		for range 2 {
			testkit.Must(t, p.Read(protobufPage(t, c, h, q, g), "application/vnd.google.protobuf"))
		}
	}
	expect(t, s, `c_total 3
g{a="x"} 4
h_bucket{le="1"} 1
h_bucket{le="2"} 2
h_bucket{le="+Inf"} 2
h_sum 2
h_count 2
q{worker="w1",quantile="0.5"} 4
q_sum{worker="w1"} 4
q_count{worker="w1"} 1
q{worker="w2",quantile="0.5"} 4
q_sum{worker="w2"} 4
q_count{worker="w2"} 1
`)
	families, _ := s.Gather()
	e := families[0].GetMetric()[0].GetCounter().GetExemplar()
	testkit.Want(t, e.GetLabel()[0].GetValue() == "w2", "exemplar is %v", e)
}

// A page that is cut counts up to there.
func TestProtobufCut(t *testing.T) {
	s := NewStore(Options{})
	g, h := prometheus.NewGauge(prometheus.GaugeOpts{Name: "a", Help: "A."}), prometheus.NewGauge(prometheus.GaugeOpts{Name: "b", Help: "B."})
	page := protobufPage(t, g, h)
	testkit.Want(t, s.Join("w").ReadProtobuf(page[:len(page)-1]) != nil, "no error")
	expect(t, s, "a 0\n")
}

func nativeHistogram(factor, zero float64) prometheus.Histogram {
	return prometheus.NewHistogram(prometheus.HistogramOpts{
		Name: "h", Help: "H.", NativeHistogramBucketFactor: factor, NativeHistogramZeroThreshold: zero,
	})
}

// Two native histograms add up to one that has seen all values with the coarser
// buckets and the wider zero bucket, also over an end and a new beginning.
func TestNativeHistograms(t *testing.T) {
	for _, c := range []struct{ one, other, zeroOne, zeroOther float64 }{
		{1.1, 1.1, 1e-9, 1e-9}, {1.1, 2, 1e-9, 1e-9}, {4, 1.01, 1e-9, 1e-9}, {1.1, 1.1, 0.5, 1e-9}, {2, 1.1, 1e-9, 0.25},
	} {
		r := rand.New(rand.NewPCG(1, 2))
		s := NewStore(Options{})
		all := nativeHistogram(max(c.one, c.other), max(c.zeroOne, c.zeroOther))
		factors, zeros := []float64{c.one, c.other, c.one}, []float64{c.zeroOne, c.zeroOther, c.zeroOne}
		for n := range factors {
			h := nativeHistogram(factors[n], zeros[n])
			p := s.Join("w")
			for range 3 {
				for range 50 {
					v := math.Exp(r.NormFloat64()*3) * float64(r.IntN(3)-1)
					h.Observe(v)
					all.Observe(v)
				}
				testkit.Must(t, p.ReadProtobuf(protobufPage(t, h)))
			}
			if n == 0 {
				p.Leave()
			}
		}
		families, _ := s.Gather()
		got := families[0].GetMetric()[0].GetHistogram()
		var m dto.Metric
		testkit.Must(t, all.Write(&m))
		want := &dto.Histogram{}
		nativeOf(m.GetHistogram()).show(want, 450)
		want.SampleSum, want.SampleCount = got.SampleSum, proto.Uint64(450)
		testkit.Want(t, proto.Equal(got, want), "%+v: sum is\n%v\nwant\n%v", c, got, want)
		back, _ := (buckets{native: nativeOf(got)}), 0
		testkit.Want(t, back.native != nil, "the sum is no histogram")
	}
}
