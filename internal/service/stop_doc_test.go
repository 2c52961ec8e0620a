package service

import (
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cabrank/cabrank/internal/config"
	"github.com/cabrank/cabrank/internal/testkit"
)

// What the documents promise of the time of a stop is what it can take: the numbers of
// docs/control.md fit into the grace period that is given with them, Kubernetes' own
// 30 s if none is, and the page names the longest time with the defaults (R17).
func TestDocumentedStopsFit(t *testing.T) {
	page := testkit.ReadFile(t, "../../docs/control.md")
	pods := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(string(page), -1)
	for _, pod := range pods {
		grace := 30 * time.Second
		if given := regexp.MustCompile(`terminationGracePeriodSeconds: (\d+)`).FindStringSubmatch(pod[1]); given != nil {
			seconds, _ := strconv.Atoi(given[1]) // the expression has digits only
			grace = time.Duration(seconds) * time.Second
		}
		var environ []string
		for _, entry := range regexp.MustCompile(`name: (CABRANK_\w+), value: "(\w+)"`).FindAllStringSubmatch(pod[1], -1) {
			environ = append(environ, entry[1]+"="+entry[2])
		}
		limit := stopLimit(configOf(t, environ...), false)
		testkit.Want(t, limit < grace, "a stop can take %v of %v with %v", limit, grace, environ)
	}
	testkit.Want(t, len(pods) == 2, "%d pods, want 2", len(pods))
	usual, longest := stopLimit(configOf(t), false)-7*time.Second, stopLimit(configOf(t), false)
	promise := "at most " + strconv.Itoa(int(usual.Seconds())) + " s, or " + strconv.Itoa(int(longest.Seconds())) + " s"
	testkit.Want(t, strings.Contains(strings.Join(strings.Fields(string(page)), " "), promise), "docs/control.md does not say %q", promise)
}

// configOf is the configuration that these variables make.
func configOf(t *testing.T, environ ...string) *config.Config {
	t.Helper()
	cfg, err := config.Load(config.Sources{Environ: environ, CPUs: 1, Procs: 1, ReadFile: func(string) ([]byte, error) { return nil, os.ErrNotExist }})
	testkit.Must(t, err)
	return cfg
}
