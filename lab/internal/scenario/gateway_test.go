package scenario

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cabrank/cabrank/internal/testkit"
)

const throughGateway = `
name: batches
values: {iterations: 200, most: 1000}
http: {path: "/random?iterations={iterations}&to={most}&seed={{.Seed}}-{{.RequestNumber}}", ready: /healthz}
rounds: 2
workers: {command: [python3, server.py, "{port}"], count: 3}
gateway: {command: [python3, "{examples}/front.py"], env: {TARGET: "{target}", N: "{iterations}"}}
arms:
  - {name: one}
  - {name: two, gateway: {env: {TARGET: "x"}}}
loads:
  - {name: fifty, callers: 20, calls: 50, takes: "{iterations}x25ms"}
  - {name: short, callers: 2, calls: 5, takes: 1s, duration: 3s}
`

func TestGateway(t *testing.T) {
	s := parsed(t, throughGateway)
	testkit.Want(t, s.HTTP.Path == "/random?iterations=200&to=1000&seed={{.Seed}}-{{.RequestNumber}}" && s.HTTP.Ready == "/healthz",
		"%+v", s.HTTP)
	g := s.Arms[0].Gateway
	if !slices.Equal(g.Command, []string{"python3", "{examples}/front.py"}) || !slices.Equal(g.Env, []string{"N=200", "TARGET={target}"}) {
		t.Errorf("%+v", g)
	}
	other := s.Arms[1].Gateway
	testkit.Want(t, slices.Equal(other.Command, g.Command) && slices.Equal(other.Env, []string{"TARGET=x"}), "%+v", other)
	testkit.Want(t, s.NeedsExamples() && s.Placed(Places{Examples: "/x"}).Arms[1].Gateway.Command[1] == "/x/front.py",
		"the examples are not placed")
	fifty := s.Loads[0]
	if fifty.Options.Calls != 50 || fifty.Takes != 5*time.Second || fifty.Options.Duration != 100*time.Second || s.Loads[1].Options.Duration != 3*time.Second {
		t.Errorf("%+v", s.Loads)
	}
	testkit.Says(t, fifty.String(), "50 calls in all")
	// Two arms, two rounds, of 5 s and of 1 s, and what is around each: a worker and a gateway, which are commands.
	want := 4*6*time.Second + 8*1500*time.Millisecond
	testkit.Want(t, s.Estimate() == want, "estimate %v, want %v", s.Estimate(), want)
}

// Whoever sets a value asks for more of it, and the text says so.
func TestValuesAreSet(t *testing.T) {
	s, err := Parse("x.yml", []byte(throughGateway), map[string]string{"iterations": "10000", "most": "5"})
	testkit.Must(t, err)
	testkit.Want(t, strings.Contains(s.HTTP.Path, "iterations=10000&to=5&") && s.Loads[0].Takes == 250*time.Second,
		"%s takes %v", s.HTTP.Path, s.Loads[0].Takes)
	testkit.Want(t, strings.HasPrefix(s.Text, "# ran with iterations=10000\n# ran with most=5\n\nname:"), "%.80q", s.Text)
	for name, want := range map[string]string{
		"iteration": "x.yml: there is no value \"iteration\"; did you mean iterations? There are: iterations, most",
		"zzz":       "x.yml: there is no value \"zzz\"; there are: iterations, most",
	} {
		_, err := Parse("x.yml", []byte(throughGateway), map[string]string{name: "5"})
		testkit.RefusedBy(t, err, want)
	}
	_, err = Parse("x.yml", []byte(throughGateway), map[string]string{"most": "-1"})
	testkit.RefusedBy(t, err, "x.yml: most=-1: want a whole number of up to 9 digits")
}

func TestGatewayFaults(t *testing.T) {
	for _, c := range []fault{
		{"rounds: 2", "method: a.B/C", `x.yml:5: method: is for gRPC, and http is given; leave one of them out`},
		{"gateway: {command: [python3, \"{examples}/front.py\"], env", "gateway: {env", `x.yml:9: arms[1]: arm "one": callers speak HTTP: to whom? give gateway, with a command`},
		{"http: {path: \"/random?", "htp: {path: \"/random?", `x.yml:4: htp: unknown key; did you mean http?`},
		{"path: \"/random?", "path: \"random?", `x.yml:4: http: path "random?iterations=200&to=1000&seed={{.Seed}}-{{.RequestNumber}}": want one such as /fibonacci?n={{.RequestNumber}}`},
		{"takes: 1s", "takes: 1", `x.yml:13: loads[2].takes: "1": want a time such as 10s, or 200x25ms`},
		{"calls: 5,", "calls: 0,", `x.yml:13: loads[2].calls: "0" is out of range; allowed: 1 to 1000000000`},
		{"most: 1000", "most: some", `x.yml:3: values[most]: "some" is not a number; allowed: 0 to 999999999`},
	} {
		c.want += "\n" // the whole line
		c.check(t, throughGateway)
	}
	rest := strings.NewReplacer("http: {path", "#", "http", "#").Replace(throughGateway)
	_, err := Parse("x.yml", []byte(rest), nil)
	testkit.Want(t, err != nil && strings.Contains(err.Error(), "it has a gateway, and calls are gRPC"), "%v", err)
}

// A given number of calls has no place on an axis of callers.
func TestGivenNumberHasNoPlace(t *testing.T) {
	s := parsed(t, throughGateway)
	x, unit := s.Loads[0].Place()
	testkit.Want(t, x == 0 && unit == "", "%v %s", x, unit)
}
