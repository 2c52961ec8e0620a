package scrape

import (
	"bytes"
	"strings"
	"testing"

	"github.com/prometheus/common/expfmt"

	"github.com/cabrank/cabrank/internal/testkit"
)

// shown is the merged page as text.
func shown(t testing.TB, s *Store) string {
	t.Helper()
	families, err := s.Gather()
	testkit.Must(t, err)
	var b bytes.Buffer
	for _, f := range families {
		_, err = expfmt.MetricFamilyToText(&b, f)
		testkit.Must(t, err)
	}
	return b.String()
}

// samples is a page without its remarks.
func samples(page string) string {
	var b strings.Builder
	for line := range strings.Lines(page) {
		if !strings.HasPrefix(line, "#") {
			b.WriteString(line)
		}
	}
	return b.String()
}

func read(t testing.TB, p *Process, page string) {
	t.Helper()
	testkit.Must(t, p.ReadText([]byte(page)))
}

func expect(t testing.TB, s *Store, want string) {
	t.Helper()
	testkit.Equal(t, samples(shown(t, s)), want, "the page")
}

func TestGaugePolicies(t *testing.T) {
	s := NewStore(Options{Rules: []Rule{{"mx", Max}, {"mn", Min}, {"av*", Avg}, {"la", Last}, {"ea", Each}}})
	for i, v := range []string{"1", "6", "2"} {
		page := ""
		for _, name := range []string{"su", "mx", "mn", "avg", "la", "ea", "process_x", "b_info", "x_created", `p{pid="` + v + `"}`} {
			base, _, _ := strings.Cut(name, "{")
			page += "# TYPE " + base + " gauge\n" + name + " " + v + "\n"
		}
		read(t, s.Join([]string{"w1", "w2", "w3"}[i]), page)
	}
	expect(t, s, `avg 3
b_info{worker="w1"} 1
b_info{worker="w2"} 6
b_info{worker="w3"} 2
ea{worker="w1"} 1
ea{worker="w2"} 6
ea{worker="w3"} 2
la 2
mn 1
mx 6
p{pid="1"} 1
p{pid="2"} 2
p{pid="6"} 6
process_x{worker="w1"} 1
process_x{worker="w2"} 6
process_x{worker="w3"} 2
su 9
x_created 1
`)
}

// A gauge is shown while its process shows it.
func TestGaugesGo(t *testing.T) {
	s := NewStore(Options{})
	a, b := s.Join("w1"), s.Join("w2")
	read(t, a, "# TYPE g gauge\ng 1\n")
	read(t, b, "# TYPE g gauge\ng 2\n")
	expect(t, s, "g 3\n")
	b.Silence()
	expect(t, s, "g 1\n")
	read(t, b, "# TYPE g gauge\ng NaN\n")
	expect(t, s, "g 1\n")
	read(t, a, "# TYPE g gauge\n")
	expect(t, s, "g NaN\n")
	a.Leave()
	b.Leave()
	expect(t, s, "")
	testkit.Equal(t, s.Stats().Series, 0, "series are left")
}

// What cannot be added up is shown for each worker, and label sets are as they are (D32).
func TestLabels(t *testing.T) {
	s := NewStore(Options{})
	read(t, s.Join("w1"), `u{worker="mine",b="x,y",c="a\"b",d=""} 1`+"\n"+"# TYPE c_total counter\nc_total 1\nc_total{a=\"1\"} 2\n")
	read(t, s.Join("w2"), "# TYPE q summary\nq{quantile=\"0.5\"} 3\nq_sum 4\nq_count 5\n# TYPE c_total counter\nc_total{b=\"1\"} 4\n")
	expect(t, s, `c_total 1
c_total{a="1"} 2
c_total{b="1"} 4
q{worker="w2",quantile="0.5"} 3
q_sum{worker="w2"} 4
q_count{worker="w2"} 5
u{b="x,y",c="a\"b",exported_worker="mine",worker="w1"} 1
`)
}

func TestPerWorker(t *testing.T) {
	s := NewStore(Options{PerWorker: true})
	a := s.Join("w1")
	read(t, a, "# TYPE c_total counter\nc_total 1\n")
	read(t, s.Join("w2"), "# TYPE c_total counter\nc_total 2\n")
	a.Leave()
	read(t, s.Join("w1"), "# TYPE c_total counter\nc_total 5\n")
	expect(t, s, "c_total{worker=\"w1\"} 6\nc_total{worker=\"w2\"} 2\n")
}

// Another type or help at one process is served, and counted once (D33).
func TestConflicts(t *testing.T) {
	s := NewStore(Options{})
	a, b := s.Join("w1"), s.Join("w2")
	for range 3 {
		read(t, a, "# HELP m first\n# TYPE m gauge\nm 1\n# TYPE h histogram\nh_bucket{le=\"+Inf\"} 1\nh_count 1\nh_sum 1\n")
		read(t, b, "# HELP m other\n# TYPE m counter\nm 2\n# TYPE h counter\nh 3\n")
	}
	if page := shown(t, s); !strings.Contains(page, "# HELP m first\n# TYPE m gauge\nm 1\nm{worker=\"w2\"} 2\n") || strings.Contains(page, "h 3") {
		t.Errorf("page is\n%s", page)
	}
	c := s.Stats().Conflicts
	testkit.Want(t, c.Type == 2 && c.Help == 0, "conflicts: %+v", c)
	// When the first one has gone, the others' type is the type.
	a.Leave()
	read(t, b, "# HELP m other\n# TYPE m counter\nm 3\n# TYPE h counter\nh 3\n")
	testkit.Says(t, shown(t, s), "# HELP m other\n# TYPE m counter\nm 3\n")
}

func TestOpenMetrics(t *testing.T) {
	s := NewStore(Options{})
	read(t, s.Join("w1"), `# TYPE c counter
# HELP c How many.
c_total{a="1"} 5.0 # {trace_id="abc"} 1.0 1700000000.5
c_created{a="1"} 1700000000
# TYPE b info
b_info{version="1"} 1
# EOF
c_total{a="1"} 100
`)
	if page := shown(t, s); page != "# TYPE b_info gauge\nb_info{version=\"1\",worker=\"w1\"} 1\n# HELP c_total How many.\n# TYPE c_total counter\nc_total{a=\"1\"} 5\n" {
		t.Errorf("page is\n%s", page)
	}
	families, _ := s.Gather()
	e := families[1].GetMetric()[0].GetCounter().GetExemplar()
	testkit.Want(t, e.GetLabel()[0].GetValue() == "abc" && e.GetValue() == 1 && e.GetTimestamp().GetNanos() == 5e8, "exemplar is %v", e)
}
