package demo

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cabrank/cabrank/internal/testkit"
)

func TestReadLogFindsTheAddress(t *testing.T) {
	for name, test := range map[string]struct{ log, addr string }{
		"the first of two": {`{"msg":"listening","addr":"127.0.0.1:1"}` + "\n" + `{"msg":"listening","addr":"127.0.0.1:2"}`, "127.0.0.1:1"},
		"after other lines": {"not JSON\n" + `{"msg":"started","addr":"x"}` + "\n" +
			`{"time":"T","level":"INFO","msg":"listening","addr":"[::]:8080"}`, "[::]:8080"},
		"never":            {`{"msg":"stopped"}`, ""},
		"a worker's words": {`{"worker":"worker-1","line":"listening addr=1"}`, ""},
		"a line too long":  {strings.Repeat("x", maxLogLine+1) + "\n", ""},
	} {
		addr := make(chan string, 1)
		readLog(strings.NewReader(test.log), addr)
		close(addr)
		testkit.Equal(t, <-addr, test.addr, "%s", name)
	}
}

func TestReadLogKeepsTheLastLines(t *testing.T) {
	var log strings.Builder
	var want []string
	for i := range 100 {
		line := fmt.Sprintf("line %d", i)
		fmt.Fprintln(&log, line)
		if i >= 100-keptLines {
			want = append(want, line)
		}
	}
	got := readLog(strings.NewReader(log.String()), nil)
	testkit.Want(t, slices.Equal(got, want), "got %q", got)
}
