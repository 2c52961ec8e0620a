package scrape

import (
	"bytes"
	"math"
	"slices"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/cabrank/cabrank/internal/testkit"
)

// Two processes show any pages twice: nothing panics, and what is shown is a page that
// Prometheus reads.
func FuzzPages(f *testing.F) {
	for _, page := range seeds() {
		f.Add([]byte(page), []byte(page), false)
	}
	f.Fuzz(func(t *testing.T, one, other []byte, protobuf bool) {
		s := NewStore(Options{})
		kind := ""
		if protobuf {
			kind = "application/vnd.google.protobuf"
		}
		a, b := s.Join("w1"), s.Join("w2")
		for _, page := range [][]byte{one, other, one} {
			_ = a.Read(page, kind)
			_ = b.Read(other, "")
		}
		page := shown(t, s)
		parser := expfmt.NewTextParser(model.LegacyValidation)
		_, err := parser.TextToMetricFamilies(strings.NewReader(page))
		testkit.Need(t, err == nil, "%v\n%s", err, page)
		a.Leave()
		b.Leave()
		_ = shown(t, s)
	})
}

func seeds() []string {
	return []string{
		"# HELP m A text.\n# TYPE m gauge\nm{a=\"1\",b=\"x\\\"y\\\\z\\n\"} 1.5\nm 2 1700000000000\n",
		"# TYPE h histogram\nh_bucket{le=\"1\"} 1\nh_bucket{le=\"+Inf\"} 2\nh_sum 3\nh_count 2\n",
		"# TYPE q summary\nq{quantile=\"0.5\"} 1\nq_sum 3\nq_count 2\n",
		"# TYPE c counter\nc_total 5 # {trace_id=\"a\"} 1.0\nc_created 1\n# EOF\n",
		"# TYPE \"a.b\" counter\n{\"a.b\",\"c:d\"=\"1\"} 5\n{\"\"} 1\n", "{\"m\", a=\"1\"} 2\n",
		"m{} NaN\nn +Inf\no -Inf\n", "m{a=\"}\",} 1e5\n", "m {a = \"1\" , b=\"2\"} 0x1p3\n", "\"m\" 1", "m 1 2 3\n", "# TYPE m\n", "m{a=\"1\" b=\"2\"} 1\n",
	}
}

// What Prometheus' own parser of the text format reads, too, has the same values.
// It takes no TYPE behind its sample, and puts histograms together: untyped samples are
// compared.
func FuzzLikePrometheus(f *testing.F) {
	for _, page := range seeds() {
		f.Add([]byte(page))
	}
	f.Fuzz(func(t *testing.T, page []byte) {
		theirs := readByPrometheus(page)
		if theirs == nil || bytes.IndexByte(page, '\r') >= 0 {
			return
		}
		s := NewStore(Options{})
		if s.Join("w").ReadText(page) != nil {
			return // theirs takes A""0 for a sample
		}
		ours, _ := s.Gather()
		for _, family := range ours {
			their := theirs[family.GetName()]
			if family.GetType() != dto.MetricType_UNTYPED || their.GetType() != dto.MetricType_UNTYPED {
				continue
			}
			for _, m := range family.GetMetric() {
				if !slices.ContainsFunc(their.GetMetric(), func(other *dto.Metric) bool { return sameValue(m, other) }) {
					t.Errorf("%v is not among %v", m, their.GetMetric())
				}
			}
		}
	})
}

// readByPrometheus returns nil for what its parser refuses, or panics at, as at {}.
func readByPrometheus(page []byte) (families map[string]*dto.MetricFamily) {
	defer func() {
		if recover() != nil {
			families = nil
		}
	}()
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(page))
	if err != nil {
		return nil
	}
	return families
}

// sameValue compares what has one label less, and may have empty ones.
func sameValue(ours, theirs *dto.Metric) bool {
	var labels []*dto.LabelPair
	for _, l := range theirs.GetLabel() {
		if l.GetValue() != "" {
			labels = append(labels, l)
		}
	}
	a, b := ours.GetUntyped().GetValue(), theirs.GetUntyped().GetValue()
	return len(ours.GetLabel()) == len(labels)+1 && (a == b || math.IsNaN(a) && math.IsNaN(b))
}
