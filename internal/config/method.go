package config

import (
	"errors"
	"fmt"
	"sort"
	"strconv"
	"strings"

	"github.com/cabrank/cabrank/internal/grpcwire"
	"github.com/cabrank/cabrank/internal/rank"
	"github.com/cabrank/cabrank/internal/stats"
	"github.com/cabrank/cabrank/internal/strictyaml"
)

const (
	maxMethods = 200
	// maxPattern bounds a pattern, in bytes: calls of longer methods are not
	// told apart in metrics either.
	maxPattern   = 200
	patternLegal = "/package.Service/Method or /package.Service/*"
	codesLegal   = "names of status codes other than OK"
)

// tidyMethods brings whole names before services, which it sorts by the alphabet, and has
// retries mean something.
func (c *Config) tidyMethods() {
	order := func(i int) string { return fmt.Sprint(isWild(c.Methods[i].Pattern), c.Methods[i].Pattern) } // false is before true
	sort.Slice(c.Methods, func(i, j int) bool { return order(i) < order(j) })
	for i := range c.Methods {
		r := &c.Methods[i]
		if _, written := c.Written(entryPath("methods", r.Pattern) + ".retry_on"); r.Retries > 0 && !written {
			r.RetryOn = []grpcwire.Code{grpcwire.Unavailable}
		}
	}
}

func isWild(pattern string) bool { return strings.HasSuffix(pattern, "/*") }

// methodRules are what the parts of a rule of a method have to do with each other. Hedges are
// refused whose slower attempt would run to its end: each would take two slots for the time
// of one.
func (c *Config) methodRules(r stats.MethodRule, refuse refuse) {
	path, idempotent := entryPath("methods", r.Pattern), " for a method that is not marked idempotent"
	hedge := plain{`word:"auto=-1ns"`}.show(&r.HedgeAfter)
	policy, key := r.OnCancel, path+".on_cancel"
	if policy == 0 {
		policy, key = c.OnCancel, "on_cancel"
	}
	refuse(r.Retries > 0 && !r.Idempotent, path+".retries", strconv.Itoa(r.Retries)+idempotent, "0, or idempotent: true beside it")
	refuse(r.Retries > 0 && len(r.RetryOn) == 0, path+".retry_on", fmt.Sprintf("is empty, so that retries: %d have no cause", r.Retries), codesLegal)
	refuse(r.Retries == 0 && len(r.RetryOn) > 0, path+".retry_on", strings.Join(names(r.RetryOn), ", ")+" for a method without retries", "retries: 1 to 5 beside it")
	refuse(r.Hedged() && !r.Idempotent, path+".hedge_after", hedge+idempotent, "none, or idempotent: true beside it")
	refuse(r.Hedged() && policy == rank.Finish, path+".hedge_after",
		fmt.Sprintf("%s needs its slower attempt cancelled, which %s: finish forbids (%s)", hedge, key, c.origins[key]), "none, or on_cancel: hold or free beside it")
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

// isPattern knows /SERVICE/METHOD by its form.
func isPattern(pattern string) bool { return forms["pattern"].MatchString(pattern) }

// readCode accepts the name of a status code that is a failure.
func readCode(name string) (grpcwire.Code, error) {
	var failures []string
	for code := range grpcwire.Code(grpcwire.NumCodes - 1) {
		failures = append(failures, (code + 1).String())
	}
	upper := strings.ToUpper(name)
	code, known := grpcwire.CodeNamed(upper)
	n, notNumber := strconv.Atoi(name)
	switch {
	case known && code == grpcwire.OK:
		return 0, fmt.Errorf("%s is no failure", quote(name))
	case known:
		return code, nil
	case notNumber == nil && n > 0 && n <= len(failures):
		return 0, fmt.Errorf("%s is a number; did you mean %s?", quote(name), failures[n-1])
	}
	return 0, fmt.Errorf("%s is no status code%s", quote(name), strictyaml.DidYouMean("", upper, failures))
}
