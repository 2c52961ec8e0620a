package stats

import (
	"bytes"
	"slices"
	"strings"
	"time"

	"github.com/cabrank/cabrank/internal/grpcwire"
	"github.com/cabrank/cabrank/internal/rank"
)

// MethodRule allows retries and hedges for the calls of a method, and says how they are
// cancelled. The tags are for package config.
//
// Concurrency: Methods never changes a rule; it is replaced.
type MethodRule struct {
	// Pattern is "/package.Service/Method", or "/package.Service/*" for all
	// methods of a service that have no rule of their own.
	Pattern string
	// Idempotent says that a call may run more than once. Without it there are
	// neither retries nor hedges.
	Idempotent bool `key:"idempotent" default:"false" help:"whether a call may run more than once, so that it can be retried and hedged"`
	Retries    int  `key:"retries" default:"0" range:"0..5" help:"attempts after a first one that failed; of all calls together a tenth, and 10 a second"`
	// RetryOn are the codes after which a call is retried, and which do not win a race
	// with a hedge; UNAVAILABLE if empty.
	RetryOn []grpcwire.Code `key:"retry_on" kind:"codes" default:"UNAVAILABLE" help:"the failures that are tried again"`
	// HedgeAfter is the time without an answer after which a second attempt is made; 0
	// means never, HedgeAuto a time derived from the method's runs.
	HedgeAfter time.Duration `key:"hedge_after" default:"none" range:"1ms..1h" word:"auto=-1ns|none=0s" help:"time without an answer after which a second attempt is made, if a slot is free and nobody waits; auto: twice the time in which 95 % of them end"`
	// Timeout bounds a call from its arrival, as a deadline of its caller that is so much
	// later would; 0 means that it does not. It needs no Idempotent.
	Timeout time.Duration `key:"timeout" default:"none" range:"1ms..24h" help:"bound on a call from its arrival, as if its caller had set that deadline; a shorter one of the caller counts"`
	// OnCancel is what happens to the slot of a call that is cancelled while it runs; 0
	// means the same as for all methods. It does not need Idempotent.
	OnCancel rank.OnCancel `key:"on_cancel" kind:"cancelled" default:"as for all" help:"slot of a cancelled call, as the key on_cancel"`
}

// HedgeAuto is a HedgeAfter that follows the method's own run times.
const HedgeAuto time.Duration = -1

// Hedged reports whether a second attempt may be made beside the first.
func (r MethodRule) Hedged() bool { return r.HedgeAfter != 0 }

// Repeats reports whether a call may be sent again after this code.
func (r *MethodRule) Repeats(code grpcwire.Code) bool {
	return r != nil && slices.Contains(r.RetryOn, code)
}

// inForce returns the rule without the parts that have no effect; nil: it allows nothing.
func (r MethodRule) inForce() *MethodRule {
	switch {
	case r.Idempotent && len(r.RetryOn) == 0:
		r.RetryOn = []grpcwire.Code{grpcwire.Unavailable}
	case r.Idempotent:
	case r.Timeout == 0 && r.OnCancel == 0:
		return nil
	default:
		r = MethodRule{Pattern: r.Pattern, Timeout: r.Timeout, OnCancel: r.OnCancel}
	}
	return &r
}

// rulesOf prepares rules. A method's rule that allows nothing overrides its service's.
func rulesOf(rules []MethodRule) Patterns[*MethodRule] {
	all := make(Patterns[*MethodRule])
	for _, rule := range rules {
		all.Add(rule.Pattern, rule.inForce())
	}
	return all
}

// Patterns maps methods to values: by whole name, "/package.Service/Method", or else by
// service, "/package.Service/*".
//
// Concurrency: immutable once made.
type Patterns[T any] map[string]T

// Add sets the value for the methods of a pattern.
func (p Patterns[T]) Add(pattern string, said T) {
	p[strings.TrimSuffix(pattern, "*")] = said
}

// Find returns the value for the method of a path.
func (p Patterns[T]) Find(path []byte) (said T, found bool) {
	if len(p) == 0 {
		return said, false
	}
	if said, found = p[string(path)]; found {
		return said, true
	}
	said, found = p[string(path[:bytes.LastIndexByte(path, '/')+1])]
	return said, found
}
