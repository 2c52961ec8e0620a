package config

import (
	"errors"
	"fmt"
	"slices"
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

// sortMethods brings whole names before services, which it sorts by the alphabet.
func (c *Config) sortMethods() {
	order := func(i int) string { return fmt.Sprint(isWild(c.Methods[i].Pattern), c.Methods[i].Pattern) } // false is before true
	sort.Slice(c.Methods, func(i, j int) bool { return order(i) < order(j) })
}

func isWild(pattern string) bool { return strings.HasSuffix(pattern, "/*") }

// checkRule holds the parts of a rule against each other, and has retries mean something.
func checkRule(entry any, n strictyaml.Node) {
	r, refuse := entry.(*stats.MethodRule), refusing(n.Fault)
	if r.Retries > 0 && n.Get("retry_on").Key == "" {
		r.RetryOn = []grpcwire.Code{grpcwire.Unavailable}
	}
	const idempotent = " for a method that is not marked idempotent"
	refuse(r.Retries > 0 && !r.Idempotent, "retries", strconv.Itoa(r.Retries)+idempotent, "0, or idempotent: true beside it")
	refuse(r.Retries > 0 && len(r.RetryOn) == 0, "retry_on", fmt.Sprintf("is empty, so that retries: %d have no cause", r.Retries), codesLegal)
	refuse(r.Retries == 0 && len(r.RetryOn) > 0, "retry_on", showList(kind{}.items(&r.RetryOn))+" for a method without retries", "retries: 1 to 5 beside it")
	refuse(r.Hedged() && !r.Idempotent, "hedge_after", showHedge(*r)+idempotent, "none, or idempotent: true beside it")
}

// hedgeRules refuse hedges whose slower attempt would run to its end: each would take two
// slots for the time of one.
func (c *Config) hedgeRules(refuse refuse) {
	for _, r := range c.Methods {
		path := entryPath("methods", r.Pattern)
		policy, key := r.OnCancel, path+".on_cancel"
		if policy == 0 {
			policy, key = c.OnCancel, "on_cancel"
		}
		refuse(r.Hedged() && policy == rank.Finish, path+".hedge_after",
			fmt.Sprintf("%s needs its slower attempt cancelled, which %s: finish forbids (%s)", showHedge(r), key, c.origins[key]), "none, or on_cancel: hold or free beside it")
	}
}

func showHedge(r stats.MethodRule) string {
	if r.HedgeAfter == stats.HedgeAuto {
		return automatic
	}
	return showDuration(r.HedgeAfter)
}

// checkPattern accepts the path of a method, or of a service with a star for
// all its methods.
func checkPattern(pattern string) (string, error) {
	switch {
	case len(pattern) > maxPattern:
		return "", fmt.Errorf("is longer than %d characters", maxPattern)
	case isPattern(pattern):
		return pattern, nil
	}
	for _, near := range []string{"/" + pattern, pattern + "/*", strings.TrimSuffix(pattern, "/") + "/*", "/" + pattern + "/*"} {
		if isPattern(near) && strings.Contains(pattern, ".") {
			return "", fmt.Errorf("is not a method; did you mean %s?", near)
		}
	}
	return "", errors.New("is not a method")
}

func cleanPattern(pattern string) (string, error) {
	_, err := checkPattern(pattern)
	if err != nil {
		err = fmt.Errorf("%s %w", quote(pattern), err)
	}
	return pattern, err
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

// checkLaneName accepts what can be the label of a metric without a thought,
// but for the two names that the rank gives itself.
func checkLaneName(name string) (string, error) {
	return name, wrong("",
		flaw{name == "default", "is the lane of all calls that are in no other"},
		flaw{name == "streams", "is the lane of long calls, see stream_slots"},
		flaw{!forms["lane"].MatchString(name), "is not a name of 1 to 32 characters"})
}

// methodsOfLanes sees to it that something is in every lane, and every method in one.
func (c *Config) methodsOfLanes(refuse refuse) {
	owners := map[string]string{}
	for _, lane := range c.Lanes {
		path := entryPath("lanes", lane.Name)
		refuse(len(lane.Methods)+len(lane.Keys) == 0, path, "has neither methods nor keys, so that no call is in it", "one of the two")
		for _, method := range slices.Compact(slices.Sorted(slices.Values(lane.Methods))) {
			what, allowed := onlyOnce(owners, method, lane.Name, "")
			refuse(what != "", path+".methods", quote(method)+what, allowed)
		}
	}
}

// onlyOnce gives an item to a lane, and says what is wrong with one that is in a lane already;
// as is its form.
func onlyOnce(owners map[string]string, item, lane, as string) (what, allowed string) {
	switch first, twice := owners[item]; {
	case twice && first == lane:
		what, allowed = " is there twice"+as, "each once"
	case twice:
		what, allowed = " is also in lanes["+first+"]", "each in one lane"
	}
	owners[item] = lane
	return what, allowed
}
