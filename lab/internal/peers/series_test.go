package peers

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/cabrank/cabrank/lab/internal/measure"
)

// No run and no figure is lost; what the runs of a series share is there once.
func TestSeriesKeepEveryRun(t *testing.T) {
	at := func(peer string, repeat int, m measure.Result) run {
		return run{Peer: peer, Workload: "u16", Phase: phaseMax, Repeat: repeat, Command: fmt.Sprint(peer, " port ", repeat), LoadArgs: "-conns 4", Result: m}
	}
	failed := at("a", 1, measure.Result{})
	failed.Error, failed.Command = "said \"no\\", ""
	r := &report{Runs: []run{
		at("a", 0, measure.Result{Conns: 4, Calls: 123456789, CPUPerCall: 2.0842469006707276, After: &measure.Memory{RSSKiB: 15180}}),
		at("b", 0, measure.Result{CPUPerCall: 1000000.25, CoreBusy: []float64{1.9899999999997817}}),
		failed,
		at("a", 2, measure.Result{Calls: 7, Unsent: 3}),
	}}
	b, err := r.encode()
	if err != nil {
		t.Fatal(err)
	}
	var back report
	if err := json.Unmarshal(b, &back); err != nil || len(back.Series) != 2 {
		t.Fatalf("%v\n%s", err, b)
	}
	a := back.Series[0]
	if a.Command != "a port 0" || a.LoadArgs != "-conns 4" || a.Rounds["conns"] != nil {
		t.Errorf("got %+v", a)
	}
	for name, want := range map[string]string{
		"repeat": `[0,1,2]`, "calls": `[123456789,0,7]`, "cpu_us_per_call": `[2.08425,null,null]`, "unsent": `[null,null,3]`,
		"error": `[null,"said \"no\\",null]`, "memory_after": `[{"rss_kib":15180,"pss_kib":0,"pss_file_kib":0},null,null]`,
	} {
		if got, err := json.Marshal(a.Rounds[name]); err != nil || string(got) != want {
			t.Errorf("%s: got %s, %v, want %s", name, got, err, want)
		}
	}
	got := back.Series[1].Rounds
	if string(got["cpu_us_per_call"][0]) != "1000000" || string(got["core_busy_seconds"][0]) != "[1.99]" {
		t.Errorf("got %s", got)
	}
	if n := strings.Count(string(b), "\n{\"peer\":"); n != 2 {
		t.Errorf("%d of 2 series begin a line in\n%s", n, b)
	}
}
