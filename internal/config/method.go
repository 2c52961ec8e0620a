package config

import (
	"errors"
	"fmt"
	"sort"
	"strconv"
	"strings"

	"github.com/cabrank/cabrank/internal/grpcwire"
	"github.com/cabrank/cabrank/internal/relay"
)

// MethodRule says how the calls of a method, or of all methods of a service,
// are treated. Of two rules that name a method the one with its whole name
// holds, alone.
type MethodRule = relay.MethodRule

const (
	maxMethods = 200
	// maxPattern bounds a pattern, in bytes: calls of longer methods are not
	// told apart in metrics either.
	maxPattern   = 200
	patternLegal = "/package.Service/Method or /package.Service/*"
	codesLegal   = "names of status codes other than OK"
)

// methodRules is the kind of methods.
func methodRules() entries[MethodRule] {
	return entries[MethodRule]{
		name: func(r *MethodRule) *string { return &r.Pattern }, max: maxMethods, legal: patternLegal,
		clean: checkPattern, check: checkMethod,
		whole: func(rules []MethodRule, _ *outline) {
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
		r.RetryOn = []grpcwire.Code{grpcwire.Unavailable}
	case r.Retries == 0 && len(r.RetryOn) > 0:
		at.faultAt(path+".retry_on", strings.Join(names(r.RetryOn), ", ")+" for a method without retries", "retries: 1 to 5 beside it")
	}
	if r.Hedged() && !r.Idempotent {
		at.faultAt(path+".hedge_after", showHedge(r.HedgeAfter)+" for a method that is not marked idempotent", "none, or idempotent: true beside it")
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

// readCode accepts the name of a status code that is a failure.
func readCode(name string) (grpcwire.Code, error) {
	upper := strings.ToUpper(name)
	code, known := grpcwire.CodeNamed(upper)
	switch {
	case known && code == grpcwire.OK:
		return 0, fmt.Errorf("%s is no failure", quote(name))
	case known:
		return code, nil
	}
	var failures []string
	for code := range grpcwire.Code(grpcwire.NumCodes - 1) {
		failures = append(failures, (code + 1).String())
	}
	if n, err := strconv.Atoi(name); err == nil && n > 0 && n <= len(failures) {
		return 0, fmt.Errorf("%s is a number; did you mean %s?", quote(name), failures[n-1])
	}
	return 0, fmt.Errorf("%s is no status code%s", quote(name), didYouMean("", upper, failures))
}
