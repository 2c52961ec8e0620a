package config

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cabrank/cabrank/internal/grpcwire"
	"github.com/cabrank/cabrank/internal/rank"
	"github.com/cabrank/cabrank/internal/relay"
	"github.com/cabrank/cabrank/internal/stats"
)

// ruleFile has one of everything that a lane or a method may have.
const ruleFile = `
fair:
  key: metadata:x-tenant
  weights: {gold: 4, "free plan": 0.25}
lanes:
  admin:
    methods: [/shop.Admin/*]
    priority: 10
    reserve: 2
  batch: {keys: [nightly, "null"], priority: -5}
methods:
  /shop.Orders/*: {on_cancel: free}
  /shop.Orders/Get:
    idempotent: true
    retries: 2
    retry_on: [unavailable, ABORTED]
    hedge_after: 150ms
  /shop.Catalog/Find: &reads {idempotent: true, retries: 1, hedge_after: auto}
  /shop.Catalog/All: *reads
  /shop.Orders/Put:
#    retries: 9
`

func wantRules(t *testing.T, c *Config) {
	t.Helper()
	if want := map[string]float64{"gold": 4, "free plan": 0.25}; !maps.Equal(c.Fair.Weights, want) {
		t.Errorf("weights are %v", c.Fair.Weights)
	}
	lanes := []relay.Lane{
		{Methods: []string{"/shop.Admin/*"}, LaneOptions: rank.LaneOptions{Name: "admin", Priority: 10, Reserve: 2}},
		{Keys: []string{"nightly", "null"}, LaneOptions: rank.LaneOptions{Name: "batch", Priority: -5}},
	}
	if !reflect.DeepEqual(c.Lanes, lanes) {
		t.Errorf("lanes are %+v", c.Lanes)
	}
	methods := []stats.MethodRule{ // whole names first
		{Pattern: "/shop.Catalog/All", Idempotent: true, Retries: 1, RetryOn: []grpcwire.Code{grpcwire.Unavailable}, HedgeAfter: stats.HedgeAuto},
		{Pattern: "/shop.Catalog/Find", Idempotent: true, Retries: 1, RetryOn: []grpcwire.Code{grpcwire.Unavailable}, HedgeAfter: stats.HedgeAuto},
		{Pattern: "/shop.Orders/Get", Idempotent: true, Retries: 2, RetryOn: []grpcwire.Code{grpcwire.Unavailable, grpcwire.Aborted}, HedgeAfter: 150 * time.Millisecond},
		{Pattern: "/shop.Orders/Put"},
		{Pattern: "/shop.Orders/*", OnCancel: rank.Free},
	}
	if !reflect.DeepEqual(c.Methods, methods) {
		t.Errorf("methods are %+v", c.Methods)
	}
}

func TestRulesFromFile(t *testing.T) {
	c := mustLoad(t, sources(map[string]string{"cabrank.yml": ruleFile}))
	wantRules(t, c)
	if len(c.Warnings) > 0 {
		t.Errorf("warnings %q", c.Warnings)
	}
}

// A variable holds the same as YAML or JSON text, and takes the place of all
// that the file says under the key.
func TestRulesFromVariables(t *testing.T) {
	file := map[string]string{"cabrank.yml": "fair: {key: 'metadata:x-tenant', weights: {iron: 2}}\nlanes: {z: {keys: [a]}}\nmethods: {/a.B/C: {}}"}
	wantRules(t, mustLoad(t, sources(file,
		`CABRANK_FAIR_WEIGHTS={"gold":4,"free plan":0.25}`,
		`CABRANK_LANES={"admin":{"methods":["/shop.Admin/*"],"priority":10,"reserve":2},"batch":{"keys":["nightly","null"],"priority":-5}}`,
		`CABRANK_METHODS={/shop.Orders/*: {on_cancel: free}, /shop.Orders/Put: {},
		  /shop.Orders/Get: {idempotent: true, retries: 2, retry_on: [unavailable, ABORTED], hedge_after: 150ms},
		  /shop.Catalog/Find: &r {idempotent: true, retries: 1, hedge_after: auto}, /shop.Catalog/All: *r}`)))
	c := mustLoad(t, sources(file, "CABRANK_FAIR_WEIGHTS=none", "CABRANK_LANES=none", "CABRANK_METHODS={}"))
	if len(c.Fair.Weights)+len(c.Lanes)+len(c.Methods) != 0 {
		t.Errorf("none is %v, %v, %v", c.Fair.Weights, c.Lanes, c.Methods)
	}
}

// What is shown of a key's entries can be written back, each on a line below the
// key or all together in a variable.
func TestShownRulesCanBeReadBack(t *testing.T) {
	first := mustLoad(t, sources(map[string]string{"cabrank.yml": ruleFile}))
	var environ []string
	below := map[string]string{}
	for _, key := range Keys() {
		if _, ok := key.kind.(nested); ok {
			environ = append(environ, key.Env+"="+key.kind.show(key.field(first)))
		}
	}
	for _, value := range first.Values() {
		below[value.Key] += "  " + value.Value + "\n"
	}
	wantRules(t, mustLoad(t, sources(nil, append(environ, "CABRANK_FAIR_KEY=metadata:x-tenant")...)))
	wantRules(t, mustLoad(t, sources(map[string]string{"cabrank.yml": "fair.key: metadata:x-tenant\nfair.weights:\n" +
		below["fair.weights"] + "lanes:\n" + below["lanes"] + "methods:\n" + below["methods"]})))
}

// Each entry is shown with the line on which it stands.
func TestOriginsOfEntries(t *testing.T) {
	c := mustLoad(t, sources(map[string]string{"cabrank.yml": ruleFile + "\nlisten: :1\n"}, "CABRANK_LANES={a: {keys: [k]}}"))
	var got []string
	for _, value := range c.Values() {
		if slices.Contains([]string{"fair.weights", "lanes", "methods"}, value.Key) {
			got = append(got, value.Key+" "+value.Origin.String()+" "+value.Value)
		}
	}
	want := []string{
		`fair.weights cabrank.yml:4 "free plan": 0.25`,
		`fair.weights cabrank.yml:4 gold: 4`,
		`lanes variable CABRANK_LANES a: {keys: [k]}`,
		`methods cabrank.yml:19 /shop.Catalog/All: {idempotent: true, retries: 1, retry_on: [UNAVAILABLE], hedge_after: auto}`,
		`methods cabrank.yml:18 /shop.Catalog/Find: {idempotent: true, retries: 1, retry_on: [UNAVAILABLE], hedge_after: auto}`,
		`methods cabrank.yml:13 /shop.Orders/Get: {idempotent: true, retries: 2, retry_on: [UNAVAILABLE, ABORTED], hedge_after: 150ms}`,
		`methods cabrank.yml:20 /shop.Orders/Put: {}`,
		`methods cabrank.yml:12 /shop.Orders/*: {on_cancel: free}`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s", strings.Join(got, "\n"))
	}
}

// Addresses are written in many ways and compared in one.
func TestPeersHaveOneForm(t *testing.T) {
	c := mustLoad(t, sources(map[string]string{"cabrank.yml": `
fair.weights: {"::ffff:10.0.0.7": 2, "2001:DB8:0::1": 3, unix: 5}
lanes: {a: {keys: [10.0.0.8, "fe80::1%eth0"]}}
`}))
	if want := map[string]float64{"10.0.0.7": 2, "2001:db8::1": 3, "unix": 5}; !maps.Equal(c.Fair.Weights, want) {
		t.Errorf("weights are %v", c.Fair.Weights)
	}
	if want := []string{"10.0.0.8", "fe80::1"}; !slices.Equal(c.Lanes[0].Keys, want) {
		t.Errorf("keys are %q", c.Lanes[0].Keys)
	}
	for _, value := range c.Values() {
		if value.Key == "fair.weights" && value.Origin.String() != "cabrank.yml:2" {
			t.Errorf("%s comes from %s", value.Value, value.Origin)
		}
	}
}

// many writes n entries on one line.
func many(n int, entry string) string {
	var entries []string
	for i := range n {
		entries = append(entries, fmt.Sprintf(entry, i))
	}
	return "{" + strings.Join(entries, ", ") + "}"
}

func TestMethodFaults(t *testing.T) {
	const (
		pattern = "/package.Service/Method or /package.Service/*"
		codes   = "names of status codes other than OK, at most 17, or none"
		get     = "methods:\n  /shop.Orders/Get:\n    "
		path    = "3: methods[/shop.Orders/Get]."
	)
	tests := []struct{ name, file, want string }{
		{"one value", "methods: all", "methods: has no entries of the form name: {...}; allowed: " + pattern + ", at most 200, or none"},
		{"empty text", "methods: ''", "methods: has no entries of the form name: {...}; allowed: " + pattern + ", at most 200, or none"},
		{"a list", "methods: [/a.B/C]", "methods: has no entries of the form name: {...}; allowed: " + pattern + ", at most 200, or none"},
		{"too many", "methods: " + many(201, "/a.B/C%d: {}"), "methods: 201 entries are too many; allowed: " + pattern + ", at most 200, or none"},
		{"no slash", "methods: {shop.Orders/Get: {}}", "methods[shop.Orders/Get]: is not a method; did you mean /shop.Orders/Get? allowed: " + pattern},
		{"no method", "methods: {/shop.Orders: {}}", "methods[/shop.Orders]: is not a method; did you mean /shop.Orders/*? allowed: " + pattern},
		{"empty method", "methods: {/shop.Orders/: {}}", "methods[/shop.Orders/]: is not a method; did you mean /shop.Orders/*? allowed: " + pattern},
		{"service alone", "methods: {shop.Orders: {}}", "methods[shop.Orders]: is not a method; did you mean /shop.Orders/*? allowed: " + pattern},
		{"all services", "methods: {'/*': {}}", "methods[/*]: is not a method; allowed: " + pattern},
		{"star", "methods: {'*': {}}", `methods["*"]: is not a method; allowed: ` + pattern},
		{"part of a name", "methods: {/shop.Orders/Get*: {}}", "methods[/shop.Orders/Get*]: is not a method; allowed: " + pattern},
		{"three parts", "methods: {/shop/Orders/Get: {}}", "methods[/shop/Orders/Get]: is not a method; allowed: " + pattern},
		{"line break", `methods: {"/a.B/C\nx": {}}`, `methods["/a.B/C\nx"]: is not a method; allowed: ` + pattern},
		{"endless", "methods: {/a.B/" + strings.Repeat("x", 200) + ": {}}", `methods["/a.B/` + strings.Repeat("x", 55) + `"...]: is longer than 200 characters; allowed: ` + pattern},
		{"name that is a list", "methods: {[a]: {}}", "methods[\"\"]: is not a method; allowed: " + pattern},
		{"twice", "methods:\n  /a.B/C: {}\n  /a.B/C: {}", "3: methods[/a.B/C]: is set twice, first on line 2; allowed: once"},
		{"one value for an entry", "methods: {/a.B/C: 3}", "methods[/a.B/C]: is not a section; allowed: keys under it: idempotent, retries, retry_on, hedge_after, timeout, on_cancel"},
		{"part, near one", get + "retrys: 1", path + "retrys: unknown key; did you mean retries?"},
		{"part, near none", get + "colour: red", path + "colour: unknown key; allowed: idempotent, retries, retry_on, hedge_after, timeout, on_cancel"},
		{"part twice", get + "retries: 0\n    retries: 1", "4: methods[/shop.Orders/Get].retries: is set twice, first on line 3; allowed: once"},
		{"part without value", get + "retries:", path + "retries: has no value; allowed: 0 to 5"},
		{"part with parts", get + "retries: {a: 1}", path + "retries: is a section, not a value; allowed: 0 to 5"},
		{"truth value", get + "idempotent: perhaps", path + `idempotent: "perhaps" is neither true nor false; allowed: true or false`},
		{"too many retries", get + "retries: 6", path + "retries: \"6\" is out of range; allowed: 0 to 5"},
		{"retries as a list", get + "retries: [1]", path + "retries: is a list, not one value; allowed: 0 to 5"},
		{"retries that may do harm", get + "retries: 2", path + "retries: 2 for a method that is not marked idempotent; allowed: 0, or idempotent: true beside it"},
		{"retries of nothing", get + "idempotent: true\n    retries: 2\n    retry_on: none",
			"5: methods[/shop.Orders/Get].retry_on: is empty, so that retries: 2 have no cause; allowed: names of status codes other than OK"},
		{"code, near one", get + "retry_on: [UNAVAILBLE]", path + `retry_on: "UNAVAILBLE" is no status code; did you mean UNAVAILABLE? allowed: ` + codes},
		{"code, near none", get + "retry_on: [SOMETIMES]", path + `retry_on: "SOMETIMES" is no status code; allowed: ` + codes},
		{"code as a number", get + "retry_on: [14]", path + `retry_on: "14" is a number; did you mean UNAVAILABLE? allowed: ` + codes},
		{"number of no code", get + "retry_on: [17]", path + `retry_on: "17" is no status code; allowed: ` + codes},
		{"success", get + "retry_on: [OK]", path + `retry_on: "OK" is no failure; allowed: ` + codes},
		{"codes without retries", get + "retry_on: [ABORTED, INTERNAL]", path + "retry_on: ABORTED, INTERNAL for a method without retries; allowed: retries: 1 to 5 beside it"},
		{"hedge without unit", get + "hedge_after: 50", path + `hedge_after: "50" has no unit, as in 50s; allowed: 1ms to 1h, auto, or none`},
		{"hedge at once", get + "hedge_after: 0s", path + "hedge_after: \"0s\" is out of range; allowed: 1ms to 1h, auto, or none"},
		{"hedge that may do harm", get + "hedge_after: 50ms", path + "hedge_after: 50ms for a method that is not marked idempotent; allowed: none, or idempotent: true beside it"},
		{"auto hedge that may do harm", get + "hedge_after: auto", path + "hedge_after: auto for a method that is not marked idempotent; allowed: none, or idempotent: true beside it"},
		{"cancel", get + "on_cancel: auto", path + `on_cancel: "auto" is unknown; allowed: hold, free, finish`},
		{"hedge that nobody stops", "methods:\n  /a.B/C: {idempotent: true, hedge_after: auto, on_cancel: finish}",
			"2: methods[/a.B/C].hedge_after: auto needs its slower attempt cancelled, which methods[/a.B/C].on_cancel: finish forbids (cabrank.yml:2); allowed: none, or on_cancel: hold or free beside it"},
		{"hedge that nobody stops, by the key for all", "on_cancel: finish\nmethods:\n  /a.B/C: {idempotent: true, hedge_after: 5ms}",
			"3: methods[/a.B/C].hedge_after: 5ms needs its slower attempt cancelled, which on_cancel: finish forbids (cabrank.yml:1); allowed: none, or on_cancel: hold or free beside it"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) { wantFault(t, test.file, test.want) })
	}
}

func TestLaneFaults(t *testing.T) {
	const (
		names   = "names of lower case letters, digits, _ and -"
		lane    = "lanes:\n  a:\n    "
		pattern = "/package.Service/Method or /package.Service/*, at most 200, or none"
		callers = "values of fair.key, at most 1000, or none"
	)
	tests := []struct{ name, file, want string }{
		{"a list", "lanes: [a]", "lanes: has no entries of the form name: {...}; allowed: " + names + ", at most 8, or none"},
		{"too many", "lanes: " + many(9, "l%d: {keys: [a]}"), "lanes: 9 entries are too many; allowed: " + names + ", at most 8, or none"},
		{"name in upper case", "lanes: {Admin: {keys: [10.0.0.1]}}", "lanes[Admin]: is not a name of 1 to 32 characters; allowed: " + names},
		{"empty name", "lanes: {'': {keys: [10.0.0.1]}}", `lanes[""]: is not a name of 1 to 32 characters; allowed: ` + names},
		{"endless name", "lanes: {" + strings.Repeat("x", 33) + ": {keys: [10.0.0.1]}}", "lanes[" + strings.Repeat("x", 33) + "]: is not a name of 1 to 32 characters; allowed: " + names},
		{"name of the others' lane", "lanes: {default: {keys: [10.0.0.1]}}", "lanes[default]: is the lane of all calls that are in no other; allowed: " + names},
		{"name of the long calls' lane", "lanes: {streams: {keys: [10.0.0.1]}}", "lanes[streams]: is the lane of long calls, see stream_slots; allowed: " + names},
		{"nobody in it", "lanes:\n  a: {priority: 3}", "2: lanes[a]: has neither methods nor keys, so that no call is in it; allowed: one of the two"},
		{"nothing in it", "lanes:\n  a:", "2: lanes[a]: has neither methods nor keys, so that no call is in it; allowed: one of the two"},
		{"part, near one", lane + "prioritiy: 3", "3: lanes[a].prioritiy: unknown key; did you mean priority?"},
		{"part, near none", lane + "colour: red", "3: lanes[a].colour: unknown key; allowed: methods, keys, priority, reserve"},
		{"priority", lane + "priority: 101", "3: lanes[a].priority: \"101\" is out of range; allowed: -100 to 100"},
		{"reserve", lane + "reserve: -1", "3: lanes[a].reserve: \"-1\" is out of range; allowed: 0 to 100000000"},
		{"method", lane + "methods: [shop.Admin/Ping]", `3: lanes[a].methods: "shop.Admin/Ping" is not a method; did you mean /shop.Admin/Ping? allowed: ` + pattern},
		{"item with parts", lane + "methods: [{a: b}]", "3: lanes[a].methods: has an item that is not plain text; allowed: " + pattern},
		{"too many methods", lane + "methods: [/a.B/C" + strings.Repeat(", /a.B/C", 200) + "]", "3: lanes[a].methods: 201 items are too many; allowed: " + pattern},
		{"empty caller", lane + "keys: ['']", `3: lanes[a].keys: "" is empty or has spaces around it; allowed: ` + callers},
		{"caller that no header can hold", lane + "keys: [käse]", `3: lanes[a].keys: (hidden) has characters that are not ASCII; allowed: ` + callers},
		{"caller that is no address", lane + "keys: [gold]", `3: lanes[a].keys: (hidden) is not an address, and callers are told apart by theirs; allowed: addresses, unix, or another fair.key (default)`},
		{"one caller, twice", lane + "keys: ['::1', '0::1']", `3: lanes[a].keys: "0::1" is there twice, as ::1; allowed: each once`},
		{"method in two lanes", "lanes:\n  a: {methods: [/a.B/C]}\n  b:\n    methods: [/a.B/C]", `4: lanes[b].methods: "/a.B/C" is also in lanes[a]; allowed: each in one lane`},
		{"caller in two lanes", "fair.key: authority\nlanes: {a: {keys: [k]}, b: {keys: [k]}}", `2: lanes[b].keys: (hidden) is also in lanes[a]; allowed: each in one lane`},
		{"all slots", "slots: 2\nlanes:\n  a: {methods: [/a.B/*], reserve: 8}",
			"3: lanes[a].reserve: 8 leaves no slot for other calls: lanes reserve 8 of 8 (workers.count 4 x workers.slots 2); allowed: 0 to 7"},
		{"all slots together", "slots: 2\nlanes:\n  a: {methods: [/a.B/*], reserve: 5}\n  b: {methods: [/a.C/*], reserve: 3}",
			"4: lanes[b].reserve: 3 leaves no slot for other calls: lanes reserve 8 of 8 (workers.count 4 x workers.slots 2); allowed: 0 to 2"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) { wantFault(t, test.file, test.want) })
	}
}

func TestWeightFaults(t *testing.T) {
	const allowed = "values of fair.key with weights of 0.01 to 1000, at most 1000, or none"
	tests := []struct{ name, file, want string }{
		{"one value", "fair: {weights: 3}", "fair.weights: has no entries of the form key: weight; allowed: " + allowed},
		{"too many", "fair.weights: " + many(1001, "k%d: 1"), "fair.weights: 1001 entries are too many; allowed: " + allowed},
		{"nothing", "fair.weights: {10.0.0.1: 0}", "fair.weights[10.0.0.1]: \"0\" is out of range; allowed: 0.01 to 1000"},
		{"below the range", "fair.weights: {10.0.0.1: 0.001}", "fair.weights[10.0.0.1]: \"0.001\" is out of range; allowed: 0.01 to 1000"},
		{"above the range", "fair.weights: {10.0.0.1: 1001}", "fair.weights[10.0.0.1]: \"1001\" is out of range; allowed: 0.01 to 1000"},
		{"not a number", "fair.weights: {10.0.0.1: heavy}", `fair.weights[10.0.0.1]: "heavy" is not a number; allowed: 0.01 to 1000`},
		{"a list", "fair.weights: {10.0.0.1: [1]}", "fair.weights[10.0.0.1]: is a list, not one value; allowed: 0.01 to 1000"},
		{"no value", "fair.weights:\n  10.0.0.1:", "2: fair.weights[10.0.0.1]: has no value; allowed: 0.01 to 1000"},
		{"twice", "fair.weights:\n  10.0.0.1: 1\n  10.0.0.1: 2", "3: fair.weights[10.0.0.1]: is set twice, first on line 2; allowed: once"},
		{"twice, written differently", "fair.weights:\n  10.0.0.1: 1\n  '::ffff:10.0.0.1': 2", `3: fair.weights["::ffff:10.0.0.1"]: "::ffff:10.0.0.1" is there twice, as 10.0.0.1; allowed: each once`},
		{"empty caller", "fair.weights: {'': 1}", `fair.weights[""]: "" is empty or has spaces around it; allowed: values of fair.key`},
		{"endless caller", "fair.weights: {" + strings.Repeat("x", 201) + ": 1}",
			`fair.weights[(hidden)]: (hidden) is longer than 200 characters; allowed: values of fair.key`},
		{"no address", "fair.weights: {gold: 2}",
			`fair.weights[(hidden)]: (hidden) is not an address, and callers are told apart by theirs; allowed: addresses, unix, or another fair.key (default)`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) { wantFault(t, test.file, test.want) })
	}
}

// The text of a variable is judged in the same words, without lines.
func TestRuleFaultsInVariables(t *testing.T) {
	const allowed = "/package.Service/Method or /package.Service/*, at most 200, or none"
	for text, want := range map[string]string{
		"{/a.B/C: {retries: 9}}":       "methods[/a.B/C].retries: \"9\" is out of range; allowed: 0 to 5",
		"{/a.B/C: {}, /a.B/C: {}}":     "methods[/a.B/C]: is set twice, first on line 1; allowed: once",
		"/a.B/C":                       "methods: has no entries of the form name: {...}; allowed: " + allowed,
		"{/a.B/C: {}":                  "methods: is not valid YAML, here or below: did not find expected ',' or '}'; allowed: " + allowed,
		"# nothing":                    "methods: has no value; allowed: " + allowed,
		"{}\n---\n{}":                  "methods: a second YAML document begins here; allowed: " + allowed,
		strings.Repeat(" ", 1<<20+1):   "methods: has more than 1048576 bytes; allowed: " + allowed,
		"{/a.B/C: {retry_on: [NOPE]}}": `methods[/a.B/C].retry_on: "NOPE" is no status code; allowed: names of status codes other than OK, at most 17, or none`,
	} {
		got := faultsOf(t, sources(nil, "CABRANK_METHODS="+text))
		if want = "variable CABRANK_METHODS: " + want; !slices.Equal(got, []string{want}) {
			t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), want)
		}
	}
}

// All that is wrong in a value is told at once.
func TestEveryRuleFaultIsReported(t *testing.T) {
	got := faultsOf(t, sources(map[string]string{"cabrank.yml": "methods:\n  a: {retries: 9}\n  /a.B/C:\n    colour: 1\n    retries: 2\n"}))
	want := []string{
		"cabrank.yml:2: methods[a]: is not a method; allowed: /package.Service/Method or /package.Service/*",
		"cabrank.yml:2: methods[a].retries: \"9\" is out of range; allowed: 0 to 5",
		"cabrank.yml:4: methods[/a.B/C].colour: unknown key; allowed: idempotent, retries, retry_on, hedge_after, timeout, on_cancel",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s", strings.Join(got, "\n"))
	}
}

// The lists of the file as a whole may be commented out.
func TestRulesCommentedOut(t *testing.T) {
	c := mustLoad(t, sources(map[string]string{"cabrank.yml": "methods:\n#  /a.B/C: {}\nlanes:\nfair:\n  weights:\n"}))
	if len(c.Methods)+len(c.Lanes)+len(c.Fair.Weights) != 0 {
		t.Errorf("got %+v", c)
	}
}
