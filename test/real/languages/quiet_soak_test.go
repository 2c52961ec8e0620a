//go:build soak

package languages_test

import (
	"strings"
	"testing"

	"github.com/cabrank/cabrank/test/real/harness"
)

// A worker in Ruby whose words wait in it is told of; one that writes at once is not,
// and its words come.
func TestRubyWorkerHoldsItsWordsBack(t *testing.T) {
	held, at := "worker has written nothing: its runtime holds back what is printed to a pipe, and loses it when it is killed, unless told to write at once", "$stdout.sync = true"
	for sync, start := range map[string]string{"as it is": "", "at once": at + "; "} {
		t.Run(sync, func(t *testing.T) {
			c := harness.StartCabrankEnv(t, harness.LangEnv(t), "--workers", "1", "--", "ruby", "-e",
				strings.Replace(rubyServer, "server.run", start+"puts 'here'; server.run", 1), "{addr}")
			if start != "" {
				c.Wait(harness.LangBound, "the worker's word", func() bool { return c.Output() != "" })
				c.WaitWorkers(1)
			} else {
				c.Wait(harness.LangBound, "the hint", func() bool { return len(c.LogLines(held)) > 0 })
				if line := c.LogLines(held)[0]; line.Text("by") != at || c.Output() != "" {
					t.Errorf("the line is %v, the output %q", line, c.Output())
				}
			}
			c.Stop()
		})
	}
}
