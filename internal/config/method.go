package config

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"
)

// MethodRule says how the calls of a method, or of all methods of a service,
// are treated. Of two rules that name a method the one with its whole name
// holds, alone.
type MethodRule struct {
	Pattern    string   // "/package.Service/Method", or "/package.Service/*"
	Idempotent bool     `key:"idempotent" default:"false" help:"whether a call may run more than once, so that it can be retried and hedged"`
	Retries    int      `key:"retries" default:"0" range:"0..5" help:"attempts after a first one that failed; of all calls together a tenth, and 10 a second"`
	RetryOn    []string `key:"retry_on" kind:"codes" default:"UNAVAILABLE" help:"the failures that are tried again"` // not empty if Retries is not 0
	Hedge      Hedge    `key:"hedge_after" kind:"hedge" default:"none" help:"time without an answer after which a second attempt is made, if a slot is free and nobody waits; auto: twice the time in which 95 % of them end"`
	OnCancel   string   `key:"on_cancel" oneof:"hold|free|finish" default:"as for all" help:"slot of a cancelled call, as the key on_cancel"` // empty: as for all
}

// Hedge is the wait for an answer until a second attempt is made.
type Hedge struct {
	After time.Duration // 0: none is made, if it is not Auto
	Auto  bool          // it is found by the method's own times
}

// Hedged reports whether a second attempt may be made beside the first.
func (r MethodRule) Hedged() bool { return r.Hedge != Hedge{} }

const (
	maxMethods = 200
	// maxPattern bounds a pattern, in bytes: calls of longer methods are not
	// told apart in metrics either.
	maxPattern   = 200
	patternLegal = "/package.Service/Method or /package.Service/*"
	codesLegal   = "names of status codes other than OK"
)

// methodRules is the kind of methods.
func methodRules() entries {
	return entries{
		of: reflect.TypeFor[MethodRule](), max: maxMethods, legal: patternLegal, clean: checkPattern,
		check: func(entry any, path string, at *outline) { checkMethod(entry.(*MethodRule), path, at) },
		whole: func(all any, _ *outline) {
			rules := *all.(*[]MethodRule)
			sort.Slice(rules, func(i, j int) bool { return exactFirst(rules[i], rules[j]) < 0 })
		},
	}
}

// exactFirst orders whole names before services, and by the alphabet.
func exactFirst(a, b MethodRule) int {
	if aWild, bWild := isWild(a.Pattern), isWild(b.Pattern); aWild != bWild {
		if aWild {
			return 1
		}
		return -1
	}
	return strings.Compare(a.Pattern, b.Pattern)
}

func isWild(pattern string) bool { return strings.HasSuffix(pattern, "/*") }

func checkMethod(r *MethodRule, path string, at *outline) {
	switch {
	case r.Retries > 0 && !r.Idempotent:
		at.faultAt(path+".retries", fmt.Sprintf("%d for a method that is not marked idempotent", r.Retries), "0, or idempotent: true beside it")
	case r.Retries > 0 && len(r.RetryOn) == 0 && at.written(path+".retry_on"):
		at.faultAt(path+".retry_on", fmt.Sprintf("is empty, so that retries: %d have no cause", r.Retries), codesLegal)
	case r.Retries > 0 && len(r.RetryOn) == 0:
		r.RetryOn = []string{unavailable}
	case r.Retries == 0 && len(r.RetryOn) > 0:
		at.faultAt(path+".retry_on", strings.Join(r.RetryOn, ", ")+" for a method without retries", "retries: 1 to 5 beside it")
	}
	if r.Hedged() && !r.Idempotent {
		at.faultAt(path+".hedge_after", hedgeDelay{}.show(&r.Hedge)+" for a method that is not marked idempotent", "none, or idempotent: true beside it")
	}
}

// checkPattern accepts the path of a method, or of a service with a star for
// all its methods.
func checkPattern(pattern string) error {
	switch {
	case len(pattern) > maxPattern:
		return fmt.Errorf("is longer than %d characters", maxPattern)
	case isPattern(pattern):
		return nil
	}
	for _, near := range []string{"/" + pattern, pattern + "/*", strings.TrimSuffix(pattern, "/") + "/*", "/" + pattern + "/*"} {
		if isPattern(near) && strings.Contains(pattern, ".") {
			return fmt.Errorf("is not a method; did you mean %s?", near)
		}
	}
	return errors.New("is not a method")
}

func cleanPattern(pattern string) (string, error) {
	if err := checkPattern(pattern); err != nil {
		return "", fmt.Errorf("%s %w", quote(pattern), err)
	}
	return pattern, nil
}

// cleanMethod accepts the path of one method.
func cleanMethod(method string) (string, error) {
	if isPattern(method) && isWild(method) {
		return "", fmt.Errorf("%s is all methods of a service, not one", quote(method))
	}
	return cleanPattern(method)
}

// isPattern knows /SERVICE/METHOD by its form: gRPC itself does not say of
// which characters names consist, so all that can stand in a path are taken.
func isPattern(pattern string) bool {
	parts := strings.Split(pattern, "/")
	if len(parts) != 3 || parts[0] != "" || parts[1] == "" || parts[2] == "" {
		return false
	}
	odd := func(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune("*?#\"\\", r) }
	return !strings.ContainsFunc(parts[1], odd) && (parts[2] == "*" || !strings.ContainsFunc(parts[2], odd))
}

const unavailable = "UNAVAILABLE"

// statusCodes are the codes of gRPC by number, from 0 to 16.
func statusCodes() []string {
	return []string{
		"OK", "CANCELLED", "UNKNOWN", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "NOT_FOUND", "ALREADY_EXISTS",
		"PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION", "ABORTED", "OUT_OF_RANGE", "UNIMPLEMENTED",
		"INTERNAL", unavailable, "DATA_LOSS", "UNAUTHENTICATED",
	}
}

// cleanCode accepts the name of a status code that is a failure.
func cleanCode(name string) (string, error) {
	codes := statusCodes()
	code := strings.ToUpper(name)
	switch {
	case code == codes[0]:
		return "", fmt.Errorf("%s is no failure", quote(name))
	case slices.Contains(codes, code):
		return code, nil
	}
	if n, err := strconv.Atoi(name); err == nil && n > 0 && n < len(codes) {
		return "", fmt.Errorf("%s is a number; did you mean %s?", quote(name), codes[n])
	}
	return "", fmt.Errorf("%s is no status code%s", quote(name), didYouMean("", code, codes[1:]))
}

// hedgeDelay is the kind of *Hedge fields.
type hedgeDelay struct{}

func (hedgeDelay) time() plain { return plain{`range:"1ms..1h"`} }

func (k hedgeDelay) set(field any, text string) error {
	hedge := Hedge{Auto: text == automatic}
	if text != automatic && text != none {
		if err := k.time().set(&hedge.After, text); err != nil {
			return err
		}
	}
	*field.(*Hedge) = hedge
	return nil
}

func (k hedgeDelay) show(field any) string {
	switch hedge := field.(*Hedge); {
	case hedge.Auto:
		return automatic
	case hedge.After == 0:
		return none
	default:
		return showDuration(hedge.After)
	}
}

func (k hedgeDelay) allowed() string { return k.time().allowed() + ", " + automatic + ", or " + none }
