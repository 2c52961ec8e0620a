package trace

import (
	"regexp"
	"strings"
	"testing"

	"github.com/cabrank/cabrank/internal/testkit"
)

// The examples of W3C Trace Context, and what differs from one of them in each field.
func TestParse(t *testing.T) {
	const trace, span = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
	for _, tc := range []struct {
		field string
		flags byte
		ok    bool
	}{
		{"00-" + trace + "-" + span + "-01", 1, true},
		{"00-" + trace + "-" + span + "-00", 0, true},
		{"00-" + trace + "-" + span + "-03", 3, true},
		{"00-" + trace + "-" + span + "-ff", 3, true}, // other flags have no meaning
		{"cc-" + trace + "-" + span + "-01", 1, true},
		{"cc-" + trace + "-" + span + "-01-what-the-future-will-be-like", 1, true},
		{"cc-" + trace + "-" + span + "-01-", 1, true},
		{"", 0, false},
		{"00", 0, false},
		{"00-" + trace + "-" + span + "-0", 0, false},
		{"00-" + trace + "-" + span + "-1 ", 0, false},
		{"00-" + trace + "-" + span + "-01-", 0, false}, // version 00 has no more
		{"00-" + trace + "-" + span + "-01 ", 0, false},
		{" 00-" + trace + "-" + span + "-01", 0, false},
		{"cc-" + trace + "-" + span + "-01.what", 0, false},
		{"ff-" + trace + "-" + span + "-01", 0, false}, // the version that none may be
		{"0g-" + trace + "-" + span + "-01", 0, false},
		{"CC-" + trace + "-" + span + "-01", 0, false},
		{"00-" + strings.ToUpper(trace) + "-" + span + "-01", 0, false},
		{"00-" + trace + "-" + strings.ToUpper(span) + "-01", 0, false},
		{"00-" + trace + "-" + span + "-0A", 0, false},
		{"00-" + trace + "-" + span + "-0x", 0, false},
		{"00-" + strings.Repeat("0", 32) + "-" + span + "-01", 0, false},
		{"00-" + trace + "-" + strings.Repeat("0", 16) + "-01", 0, false},
		{"00-" + trace[1:] + "-" + span + "-01", 0, false},
		{"00-0" + trace + "-" + span[1:] + "-01", 0, false},
		{"00-" + trace[:31] + "g-" + span + "-01", 0, false},
		{"00-" + trace[:31] + "\x00-" + span + "-01", 0, false},
		{"00-" + trace + "-" + span[:15] + "z-01", 0, false},
		{"00_" + trace + "-" + span + "-01", 0, false},
		{"00-" + trace + "_" + span + "-01", 0, false},
		{"00-" + trace + "-" + span + "_01", 0, false},
		{"00-" + trace + "-" + span + "-01, 00-" + trace + "-" + span + "-01", 0, false}, // two of them
	} {
		c, ok := Parse([]byte(tc.field))
		if ok != tc.ok || c.Flags != tc.flags || !ok && c != (Context{}) {
			t.Errorf("%q: %v, %v", tc.field, c, ok)
		}
		if want := "00-" + trace + "-" + span + "-0" + string('0'+rune(tc.flags)); ok && string(c.Append(nil)) != want {
			t.Errorf("%q is passed on as %s", tc.field, c.Append(nil))
		}
	}
}

func TestContextTakesNoMemory(t *testing.T) {
	field, bad := []byte("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"), []byte("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-0z")
	room := make([]byte, 0, parentLen)
	if n := testing.AllocsPerRun(100, func() {
		c, _ := Parse(field)
		_, _ = Parse(bad)
		room = c.Append(room[:0])
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func FuzzParse(f *testing.F) {
	form := regexp.MustCompile(`^(00|[0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}(-(?s:.*))?$`)
	f.Add([]byte("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"))
	f.Add([]byte("cc-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-02-more"))
	f.Add([]byte("00-00000000000000000000000000000000-b7ad6b7169203331-01"))
	f.Fuzz(func(t *testing.T, field []byte) {
		m := form.FindSubmatch(field)
		want := len(m) > 0 && string(m[1]) != "ff" && strings.Trim(string(m[2]), "0") != "" && strings.Trim(string(m[3]), "0") != "" &&
			(string(m[1]) != "00" || m[4] == nil)
		c, ok := Parse(field)
		testkit.Need(t, ok == want, "%q: %v, want %v", field, ok, want)
		if again, ok := Parse(c.Append(nil)); want && (!ok || again != c) {
			t.Fatalf("%q becomes %v and %v", field, c, again)
		}
	})
}

func BenchmarkParse(b *testing.B) {
	field := []byte("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
	b.ReportAllocs()
	for b.Loop() {
		_, ok := Parse(field)
		testkit.Need(b, ok, "it is malformed")
	}
}
