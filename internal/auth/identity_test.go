package auth

import (
	"strings"
	"testing"

	"github.com/cabrank/cabrank/internal/broker"
	"github.com/cabrank/cabrank/internal/testkit"
)

func TestMaySubscribe(t *testing.T) {
	id := &Identity{Subscribe: []string{"chat.*", "a?c", `x\*`, "y[1]*"}}
	for name, want := range map[string]bool{
		"chat.a": true, "chat.": true, "chat": false, "abc": true, "abbc": false, "x*": true, "xy": false,
		"p chat.*": true, "p chat.a*": true, "p chat.[ab]": true, "p cha*": false, "p *": false, "p ch?t.a": false,
		"p [c]hat.a": false, "p a?c": true, "p abc": false, `p x\*`: true, `p x\*y`: false, "p x*": false,
		"p y[1]*": true, "p y[1]a*": false, `p \chat.*`: false, "p ": false, "": false,
	} {
		name, pattern := strings.CutPrefix(name, "p ")
		testkit.Equal(t, id.MaySubscribe(broker.Topic{Name: name, Pattern: pattern}), want, "%q (pattern %t)", name, pattern)
	}
	all := &Identity{Subscribe: []string{"*"}}
	for _, topic := range []broker.Topic{{Name: "a"}, {Name: ""}, {Name: "[", Pattern: true}, {Name: "*", Pattern: true}} {
		testkit.Want(t, all.MaySubscribe(topic), "%+v is not in *", topic)
	}
}

// Whatever a rule lets through as a pattern has no channel that the rule would refuse.
func FuzzMaySubscribe(f *testing.F) {
	f.Add("chat.*", "chat.a*", "chat.ab")
	f.Add(`a\*`, "a*", "ab")
	f.Add("*", "?", "x")
	f.Fuzz(func(t *testing.T, rule, pattern, channel string) {
		id := &Identity{Subscribe: []string{rule}}
		if id.MaySubscribe(broker.Topic{Name: pattern, Pattern: true}) && broker.Matches(pattern, channel) && !matchesAny(id.Subscribe, channel) {
			t.Errorf("the rule %q allows the pattern %q, which has %q", rule, pattern, channel)
		}
	})
}

func TestBearer(t *testing.T) {
	for field, want := range map[string]string{
		"Bearer a.b.c": "a.b.c", "bearer  a ": "a", "": "", "Bearer": "", "Bearer ": "", "Basic a": "", "a.b.c": "", " Bearer a": "",
	} {
		testkit.Equal(t, Bearer(field), want, "%q", field)
	}
}
