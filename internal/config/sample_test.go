package config

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/cabrank/cabrank/internal/rank"
	"github.com/cabrank/cabrank/internal/testkit"
)

const sampleFile = "../../examples/cabrank.yml"

// commentedOut matches a setting that is there with its default, after a # that
// no space follows.
var commentedOut = regexp.MustCompile(`(?m)^( *)#([a-z_.]+:)`)

// sample returns the example file, whole or with every setting in force.
func sample(t *testing.T, all bool) string {
	t.Helper()
	content, err := os.ReadFile(sampleFile)
	testkit.Must(t, err)
	if all {
		content = commentedOut.ReplaceAll(content, []byte("$1$2"))
	}
	return string(content)
}

func TestSampleIsAccepted(t *testing.T) {
	c := mustLoad(t, sources(map[string]string{"cabrank.yml": sample(t, false)}))
	testkit.Want(t, len(c.Warnings) == 0, "warnings %q", c.Warnings)
	if c.Fair.Key.String() != "metadata:x-tenant" || !maps.Equal(c.Fair.Weights, map[string]float64{"checkout": 4, "nightly report": 0.25}) {
		t.Errorf("fair is %+v", c.Fair)
	}
	testkit.Want(t, len(c.Lanes) == 2 && c.Lanes[0].Name == "admin" && c.Lanes[0].Reserve == 1 && c.Lanes[1].Priority == -10,
		"lanes are %+v", c.Lanes)
	if len(c.Methods) != 3 || c.Methods[2].Pattern != "/shop.Catalog/*" || c.Methods[2].Retries != 2 || !c.Methods[0].Hedged() || c.Methods[1].OnCancel != rank.Finish {
		t.Errorf("methods are %+v", c.Methods)
	}
}

// The example has every key, with its default unless it is an example, and every
// part that an entry may have.
func TestSampleIsComplete(t *testing.T) {
	text := sample(t, true)
	c, standard := mustLoad(t, sources(map[string]string{"cabrank.yml": text})), mustLoad(t, sources(nil))
	shown := map[string]string{}
	for _, value := range standard.Values() {
		shown[value.Key] = value.Value
	}
	examples := []string{"fair.key", "fair.weights", "lanes", "methods", "metrics.gauges"}
	for _, value := range c.Values() {
		if value.Key == "command" {
			continue
		}
		testkit.Want(t, strings.HasPrefix(value.Origin.String(), "cabrank.yml:"), "%s is not in %s", value.Key, sampleFile)
		if !slices.Contains(examples, value.Key) && value.Value != shown[value.Key] {
			t.Errorf("%s is there as %s, and is %s by default", value.Key, value.Value, shown[value.Key])
		}
	}
	for _, key := range Keys() {
		for _, part := range key.parts() {
			testkit.Want(t, strings.Contains(text, " "+last(part.Name)+": "), "%s is not in %s", part.Name, sampleFile)
		}
	}
}
