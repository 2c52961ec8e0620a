package scenario

import (
	"testing"
)

const rawText = `
name: x
workers: {program: echo, cores: 1}
client: {raw: true, cores: "0,1"}
arms: [{name: a}, {name: b, front: {kind: cabrank, cores: 0}}]
loads: [{name: l, rate: 10, duration: 1s, data: '{"connections": 2}'}, {name: m, rate: 10, duration: 1s}]
columns: [p50]
bars:
  - {figure: p50, load: l, arm: b, over: a, less: true, most: 1e-3}
  - {figure: errors, load: m, arm: b, least: 0}
quick: {loads: [l]}
`

func TestBars(t *testing.T) {
	s, err := Parse("x.yml", []byte(rawText), nil)
	if err != nil {
		t.Fatal(err)
	}
	a := s.Arms[1]
	if len(s.Bars) != 2 || *s.Bars[0].Most != 1e-3 || !s.Bars[0].Less || s.Bars[0].Over[0] != "a" || *s.Bars[1].Least != 0 || len(s.Columns) != 1 {
		t.Errorf("got %+v, %v", s.Bars, s.Columns)
	}
	if !a.Client.Raw || a.Client.Cores != "0,1" || a.Front.Cores != "0" || a.Workers.Cores != "1" || a.Workers.Program != ProgramEcho {
		t.Errorf("got %+v", a)
	}
	if q := s.Quick(); len(q.Bars) != 1 {
		t.Errorf("with --quick: %+v", q.Bars)
	}
	if one, err := s.Only([]string{"a"}); err != nil || len(one.Bars) != 0 {
		t.Errorf("of one arm: %+v, %v", one, err)
	}
}

func TestBarsRefused(t *testing.T) {
	for _, c := range []fault{
		{"p50, load", "p55, load", "no such figure"},
		{"most: 1e-3", "most: x", "most"},
		{", most: 1e-3", "", "give most or least"},
		{"over: a", "over: c", `arm "c" does not run`},
		{"[p50]", "[p55]", "no such figure"},
		{"program: echo", "program: worker", "go together"},
		{"raw: true, ", "", "go together"},
		{`{"connections": 2}`, `{"connections": 0}`, "0 connections"},
		{"duration: 1s}", "duration: 1s, timeout: 1s}", "no timeout"},
	} {
		c.check(t, rawText)
	}
}
