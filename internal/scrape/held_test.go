package scrape

import (
	"bytes"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/cabrank/cabrank/internal/testkit"
)

// largePages are pages that take as much memory as they can, other ones each time.
func largePages() map[string]func(n int) (page []byte, kind string) {
	text := func(each func(b *bytes.Buffer, n, line int)) func(n int) ([]byte, string) {
		return func(n int) ([]byte, string) {
			b := bytes.NewBufferString("# TYPE c_total counter\n")
			for line := 0; b.Len() < 1<<20; line++ {
				each(b, n, line)
			}
			return b.Bytes(), ""
		}
	}
	long := strings.Repeat("y", 7900)
	var short strings.Builder
	for n := range 700 {
		fmt.Fprintf(&short, "a%d=\"b\",", n)
	}
	return map[string]func(n int) ([]byte, string){
		"long labels": text(func(b *bytes.Buffer, n, line int) { fmt.Fprintf(b, "c_total{x=\"%s%d-%d\"} 1\n", long, n, line) }),
		"many labels": text(func(b *bytes.Buffer, n, line int) { fmt.Fprintf(b, "c_total{%sx=\"%d-%d\"} 1\n", &short, n, line) }),
		"short series": text(func(b *bytes.Buffer, n, line int) {
			fmt.Fprintf(b, "# TYPE c%d_total counter\nc%d_total{x=\"%d\"} 1\n", line%10, line%10, n*100000+line)
		}),
		"remarks": text(func(b *bytes.Buffer, n, line int) { fmt.Fprintf(b, "#HELP a%x_%x x\n", n, line) }),
		"families": text(func(b *bytes.Buffer, n, line int) {
			fmt.Fprintf(b, "# HELP h%d_%d_total %s\n# TYPE h%d_%d_total counter\nh%d_%d_total 1\n", n, line, long[:1000], n, line, n, line)
		}),
		"buckets": text(func(b *bytes.Buffer, n, line int) {
			if line == 0 {
				b.WriteString("# TYPE h histogram\nh_count 1\nh_sum 1\n")
			}
			fmt.Fprintf(b, "h_bucket{le=\"%d.%d\"} 1\n", line, n+1)
		}),
		"exemplars": text(func(b *bytes.Buffer, n, line int) {
			fmt.Fprintf(b, "c_total{x=\"%d-%d\"} 1 # {t=\"%s\"} 1\n", n, line, long[:500])
		}),
		"protobuf": func(int) ([]byte, string) {
			body := protowire.AppendString(protowire.AppendTag(nil, nameField, protowire.BytesType), "a")
			body = protowire.AppendVarint(protowire.AppendTag(body, typeField, protowire.VarintType), uint64(dto.MetricType_GAUGE))
			for len(body) < 1<<20 {
				body = protowire.AppendBytes(protowire.AppendTag(body, metricField, protowire.BytesType), nil)
			}
			return protowire.AppendBytes(nil, body), "application/vnd.google.protobuf"
		},
	}
}

// What is counted as held is what the process grows by, and never more than the bound:
// of one worker's pages an eighth, of all a half.
func TestHeldBytesAreBounded(t *testing.T) {
	for name, page := range largePages() {
		t.Run(name, func(t *testing.T) { holdPages(t, page) })
	}
}

// Names for which it is remembered that two processes differ count as held, and are given
// up when there is no room; a process that leaves gives them back.
func TestNamesOfConflictsAreHeld(t *testing.T) {
	s := NewStore(Options{})
	s.SetMemory(16 << 20)
	first, second := s.Join("worker-1"), s.Join("worker-2")
	long := strings.Repeat("n", 4000)
	page := func(kind string, from int) []byte {
		var b bytes.Buffer
		for n := range 20 {
			fmt.Fprintf(&b, "# TYPE %s%d %s\n%s%d 1\n", long, from+n, kind, long, from+n)
		}
		return b.Bytes()
	}
	for n := range 40 {
		// Each page has other names: nothing but what is remembered stays of the one before.
		_ = first.ReadText(page("gauge", 20*n))
		_ = second.ReadText(page("histogram", 20*n))
		_, _ = first.ReadText(nil), second.ReadText(nil)
	}
	kept := int64(len(second.unlike))
	testkit.Want(t, kept != 0 && second.held >= kept*int64(len(long)) && second.held <= s.memory/processShare,
		"%d names of %d bytes are kept, %d bytes are held, at most %d may be", kept, len(long), second.held, s.memory/processShare)
	first.Leave()
	second.Leave()
	testkit.Want(t, second.held == 0 && len(second.unlike) == 0,
		"%d bytes, %d names are held of a process that has left", second.held, len(second.unlike))
}

func holdPages(t *testing.T, page func(n int) ([]byte, string)) {
	t.Helper()
	const memory, slack = 16 << 20, 1 << 20
	s := NewStore(Options{})
	s.SetMemory(memory)
	before, sent := heap(), 0
	var all []*Process
	for worker := range 5 {
		p := s.Join(fmt.Sprintf("worker-%d", worker))
		all = append(all, p)
		for n := range 3 {
			text, kind := page(worker*10 + n)
			sent += len(text)
			_ = p.Read(text, kind) // it says what is left out
			testkit.Need(t, p.held+p.made <= memory/processShare, "a process holds %d bytes", p.held+p.made)
		}
	}
	grown, held := heap()-before, s.Stats().Held
	t.Logf("%d KiB were sent, %d KiB are counted, the heap has grown by %d KiB; %+v", sent>>10, held>>10, grown>>10, s.Stats().Conflicts)
	testkit.Want(t, held <= memory/heldShare && grown <= memory/heldShare+slack,
		"%d bytes are counted, the heap has grown by %d", held, grown)
	testkit.Want(t, grown <= held+held/4+slack, "%d bytes are counted, %d are held", held, grown)
	for _, p := range all {
		p.Leave()
		testkit.Want(t, p.held == 0, "%d bytes of a process that has left", p.held)
	}
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// A page that is longer than a process may have counts as far as it was read, and what a
// process has shown before stays.
func TestTooLongPageCountsUpToThere(t *testing.T) {
	s := NewStore(Options{})
	p := s.Join("w")
	testkit.Must(t, p.read([]byte("# TYPE c_total counter\nc_total 5\n# TYPE h histogram\nh_bucket{le=\"1\"} 1\nh_co"), "", false))
	expect(t, s, "c_total 5\nh_bucket{le=\"1\"} 1\nh_bucket{le=\"+Inf\"} 1\nh_sum 0\nh_count 1\n")
}

// One process that fills its share leaves the others theirs.
func TestOneProcessLeavesTheOthersRoom(t *testing.T) {
	s := NewStore(Options{})
	s.SetMemory(16 << 20)
	bad := s.Join("w1")
	for n := range 8 {
		text, _ := largePages()["long labels"](n)
		_, left := errors.AsType[LeftOutError](bad.ReadText(text))
		testkit.Need(t, left, "nothing is left out")
	}
	read(t, s.Join("w2"), string(benchPage()))
}
