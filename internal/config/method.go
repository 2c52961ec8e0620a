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
func methodRules() entries {
	return entries{
		of: reflect.TypeFor[MethodRule](), name: "Pattern", max: maxMethods, legal: patternLegal, clean: checkPattern,
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
		r.RetryOn = []grpcwire.Code{grpcwire.Unavailable}
	case r.Retries == 0 && len(r.RetryOn) > 0:
		at.faultAt(path+".retry_on", strings.Join(names(r.RetryOn), ", ")+" for a method without retries", "retries: 1 to 5 beside it")
	}
	if r.Hedged() && !r.Idempotent {
		at.faultAt(path+".hedge_after", hedgeDelay{}.show(&r.HedgeAfter)+" for a method that is not marked idempotent", "none, or idempotent: true beside it")
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

// codes is the kind of *[]grpcwire.Code fields.
type codes struct{ list }

func (k codes) set(field any, raw string) error {
	return k.take(field, func(into *[]string) error { return k.list.set(into, raw) })
}

func (k codes) setItems(field any, items []string) error {
	return k.take(field, func(into *[]string) error { return k.list.setItems(into, items) })
}

// take stores what a list of names becomes.
func (codes) take(field any, read func(into *[]string) error) error {
	var named []string
	if err := read(&named); err != nil {
		return err
	}
	var all []grpcwire.Code
	for _, name := range named {
		code, _ := grpcwire.CodeNamed(name) // cleanCode has let it through
		all = append(all, code)
	}
	*field.(*[]grpcwire.Code) = all
	return nil
}

func (codes) show(field any) string {
	if all := *field.(*[]grpcwire.Code); len(all) > 0 {
		return "[" + strings.Join(names(all), ", ") + "]"
	}
	return none
}

// statusCodes are the codes of gRPC by number, from 0 to 16.
func statusCodes() (all []grpcwire.Code) {
	for code := range grpcwire.Code(grpcwire.NumCodes) {
		all = append(all, code)
	}
	return all
}

// cleanCode accepts the name of a status code that is a failure.
func cleanCode(name string) (string, error) {
	codes := names(statusCodes())
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

// hedgeDelay is the kind of HedgeAfter of a MethodRule.
type hedgeDelay struct{}

func (hedgeDelay) time() plain { return plain{`range:"1ms..1h"`} }

func (k hedgeDelay) set(field any, text string) error {
	into := field.(*time.Duration)
	switch text {
	case automatic:
		*into = relay.HedgeAuto
	case none:
		*into = 0
	default:
		return k.time().set(into, text)
	}
	return nil
}

func (k hedgeDelay) show(field any) string {
	switch after := *field.(*time.Duration); after {
	case relay.HedgeAuto:
		return automatic
	case 0:
		return none
	default:
		return showDuration(after)
	}
}

func (k hedgeDelay) allowed() string { return k.time().allowed() + ", " + automatic + ", or " + none }
