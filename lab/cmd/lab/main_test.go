package main

import (
	"strings"
	"testing"
)

// Who names no scenario is told which ones there are.
func TestScenariosAreTold(t *testing.T) {
	for say, args := range map[string][]string{"want the name": nil, `unknown scenario "nobody"`: {"nobody", "-quick"}, "SCENARIO": {"-help"}} {
		var stderr strings.Builder
		want := 2
		if len(args) == 1 {
			want = 0
		}
		if exit := run(args, &stderr); exit != want || !strings.Contains(stderr.String(), say) || !strings.Contains(stderr.String(), "\n  peers  ") || !strings.Contains(stderr.String(), "\n  queue  ") {
			t.Errorf("%q: exit status %d, said %s", args, exit, stderr.String())
		}
	}
}
