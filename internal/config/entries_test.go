package config

import (
	"maps"
	"reflect"
	"testing"
	"time"

	"github.com/cabrank/cabrank/internal/grpcwire"
	"github.com/cabrank/cabrank/internal/rank"
	"github.com/cabrank/cabrank/internal/relay"
	"github.com/cabrank/cabrank/internal/stats"
	"github.com/cabrank/cabrank/internal/testkit"
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
	testkit.Want(t, maps.Equal(c.Fair.Weights, map[string]float64{"gold": 4, "free plan": 0.25}), "weights are %v", c.Fair.Weights)
	lanes := []relay.Lane{
		{Methods: []string{"/shop.Admin/*"}, LaneOptions: rank.LaneOptions{Name: "admin", Priority: 10, Reserve: 2}},
		{Keys: []string{"nightly", "null"}, LaneOptions: rank.LaneOptions{Name: "batch", Priority: -5}},
	}
	testkit.Want(t, reflect.DeepEqual(c.Lanes, lanes), "lanes are %+v", c.Lanes)
	methods := []stats.MethodRule{ // whole names first
		{Pattern: "/shop.Catalog/All", Idempotent: true, Retries: 1, RetryOn: []grpcwire.Code{grpcwire.Unavailable}, HedgeAfter: stats.HedgeAuto},
		{Pattern: "/shop.Catalog/Find", Idempotent: true, Retries: 1, RetryOn: []grpcwire.Code{grpcwire.Unavailable}, HedgeAfter: stats.HedgeAuto},
		{Pattern: "/shop.Orders/Get", Idempotent: true, Retries: 2, RetryOn: []grpcwire.Code{grpcwire.Unavailable, grpcwire.Aborted}, HedgeAfter: 150 * time.Millisecond},
		{Pattern: "/shop.Orders/Put"},
		{Pattern: "/shop.Orders/*", OnCancel: rank.Free},
	}
	testkit.Want(t, reflect.DeepEqual(c.Methods, methods), "methods are %+v", c.Methods)
}

func TestRulesFromFile(t *testing.T) {
	c := mustLoad(t, sources(map[string]string{"cabrank.yml": ruleFile}))
	wantRules(t, c)
	testkit.Want(t, len(c.Warnings) == 0, "warnings %q", c.Warnings)
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
	testkit.Want(t, len(c.Fair.Weights)+len(c.Lanes)+len(c.Methods) == 0, "none is %v, %v, %v", c.Fair.Weights, c.Lanes, c.Methods)
}
